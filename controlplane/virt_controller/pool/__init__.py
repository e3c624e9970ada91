# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachinePool: keeps a number of VMs of one template, and changes them with it. See members.

A member's name consists of the pool's name and a number; a batch is a list of the lowest free numbers. The choice of
members to delete or restart depends on the members alone, never on chance: so a decision with an older cache chooses
members that are already deleted or changed, and not others.

member: the views of a VM and its VMI. machine: manifests of VMs, and changes of them. revision: the template that a VM
was created from, as a hash. order: which members come first.
"""
