# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceReplicaSet: keeps as many instances of a template as are wanted, and tells how many there are.

member: the little that is read of an instance. world: what a decision is based on. decide, status: pure. instance: what
is made, and under which names. memory: how much a process knows of what was made before. failures: how long those
wait that replace what never ran. reconciler: caches in, writes out.

Never more than wanted, whatever is lost and whoever leads: before instances are made, their number is written into the
set's status, for one resourceVersion of the set (BeginBatch). Their names follow from the set's UID and the batch's
number. So of two leaders one begins; whoever goes on, after a lost answer too, makes those of the same names, which the
API server lets exist once; and the next batch begins when all of the last one were seen. Who needs fewer than were
begun asks first which of them exist. No count of instances is kept in a process, and nothing of this rests on time.
"""
