# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachine: creates and deletes the VMI of a VM by its run strategy, and reports the VM's state.

world: the input of a decision, and the actions. decide, state_change_requests, start_failure, status, write_failure:
pure. template, vmi_manifest: the manifest of a VM's VMI. reconciler: reads the caches, writes.
"""
