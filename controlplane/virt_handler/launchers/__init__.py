# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact with the launchers of this node: one session per launcher Pod, owned by one task.

ports     what a session needs of a hypervisor (a protocol, for tests)
session   directory -> socket -> connection -> what the domain does; the verbs
verbs     each in a task of its own, one at a time
pace      how often a launcher is called and looked at
registry  Pods come and go, sessions with them
"""
