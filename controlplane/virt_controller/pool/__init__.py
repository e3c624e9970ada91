# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachinePool: keeps a number of VMs of one template, and changes them with it. See members.

A member is named after the pool and its number; a batch is a list of numbers, the lowest free ones. Which members are
deleted or restarted follows from the members themselves, never from chance: a decision with an older cache chooses
those that are already gone or changed.

member: what is read of a VM and its VMI. machine: manifests of VMs, and changes of them. revision: which template a VM
was created from, as a hash. order: which members come first.
"""
