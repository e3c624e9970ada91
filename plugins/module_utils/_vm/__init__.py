# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VM modules do; private to this collection. Imports nothing, so a payload has only the files it uses.

batch.py runs a task and calls the packages:

request  options to the object that they declare
merge    one object over another, differences, ownership of fields
write    decide what an object needs, and send it
wait     wait until objects are as declared, and explain why they are not
read     the info modules

kinds, field_path, members and missing serve all packages; console_log (with transcript, which makes text of what a
guest printed) also the package _console; guest_access the packages _console and _port_forward. multi: several objects
in a task. A test checks which package imports which.
Imports inside of functions are for code that few tasks need: Ansible compiles imported files on each run.
"""
