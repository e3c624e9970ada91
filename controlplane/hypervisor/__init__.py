# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to libvirt, for virt-handler and for virt-launcher. No policy: no retries, no "if it is not running".

errors.py      what can go wrong, translated once from libvirt's codes
calls.py       blocking calls in threads, each with a deadline
events.py      callbacks become frozen events on a queue
connection.py  one connection to one launcher's libvirtd
guest.py       one domain
"""
