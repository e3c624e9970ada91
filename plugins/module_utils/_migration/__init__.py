# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubevirt_migration and kubevirt_migration_info do, private to them.

wish: options to what is wanted of each machine. decide: what to do about it, pure. standing: how a migration stands,
and why it does not get on. nodes: whether a node can take it. move: one machine, thin. batch: all machines of a task.
info: what there is. argspec: the options.
"""
