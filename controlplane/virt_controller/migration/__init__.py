# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceMigration: from the wish that an instance moves to its end.

turn: whose turn it is. world: what a decision is based on. decide, status: pure, by phase. reconciler: caches in.
apply: writes out. The guest itself is moved by the two virt-handlers, and given to its target by vmi/ (move): here the
Pod that it goes to is made, the hand-over written, and what is left over is cleared away (docs/adr/0016).
"""
