# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceMigration: brings one migration of a VMI from its creation to its end (docs/adr/0016).

world: the input of a decision, and the actions. decide, status: pure, by phase. scheduling: which migrations may begin.
reconciler: reads the caches. apply: writes.

The two virt-handlers move the guest, and vmi/migration_commit gives the run to the target. This package creates the
target Pod, writes the hand-over, and deletes the Pods that are not needed any more.
"""
