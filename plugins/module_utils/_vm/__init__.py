# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VM modules do, private to them. Imports nothing: a module's payload holds only what it reaches.

cluster: kinds. argspec: options (instance_argspec, info_argspec: those of the other modules). request: options of one
object as a value, entries: of many. manifest, definition, option_volumes, shape: options to object. keyed_lists,
overlay: one object over another. compare, ownership, present, whole, power, instance_power, goal, guest_goal:
decisions, pure. service, writing, operate: one object, thin; instance: what is special of instances. batch: a task,
many: its objects at once. joint_wait, waiting: until it is so. diagnose, replica_set, origin: why not. info: reading.
field_path: what is hidden.
"""
