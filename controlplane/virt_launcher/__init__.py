# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PID 1's only child in a launcher Pod: prepares disks, keeps libvirtd, serves DHCP, tells how the guest ended.

__main__.py   the order of things, and the exit code
prepare.py    overlays, sparse disks, cloud-init seeds, the report; with image.py, seed.py, iso.py
libvirtd.py   its files, its process; restart.py: a new one when it dies or hangs; pulse.py: when it is taken to hang
supervise.py  everything that runs beside the guest
guest.py      the guest's end, and how it is brought about
follow.py     what QEMU writes: console.py, the serial console's log to our stdout; qemu_log.py, its own messages;
              directory_watch.py, when
room.py       room taken back from a file that grows
dhcp/         one lease for one guest

Standard library, our own contracts (controlplane.api.launch_plan, controlplane.domain) and controlplane.hypervisor.
It holds no credentials and speaks to no API server: it goes on the same when everything else is down.
"""
