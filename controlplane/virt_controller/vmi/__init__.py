# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstance: one launcher Pod per run, and the phases up to the hand-over to the node's virt-handler.

world: the input of a decision, and the actions. evidence, decide, status: pure. launcher_pod, launch, resources: the
Pod's manifest. controller_state: what no cache has. reconciler: reads the caches, writes.
"""
