# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachinePool: keeps as many VirtualMachines of a template as are wanted, numbered, and changes them with it.

member: the little that is read of a machine and of what runs. world: what a decision is based on. order: who comes
first. decide, status: pure. machine: what is made, and what becomes of it when the template changes. revision: which
template a machine was made from, in a word, instead of a history of templates. reconciler: caches in, writes out.

Never more than wanted, whatever is lost and whoever leads, in the way of a replica set (replicaset/__init__): the
numbers of machines are written into the pool's status before they are made (BeginBatch), the lowest that are free. A
machine is named after its number, and exists once; who goes on makes those of the same names, and begins others when
all of the last ones were seen. What is chosen to be deleted or restarted follows from what there is, never from chance:
whoever looks with an older view chooses those first that are gone, or have changed, by now.
"""
