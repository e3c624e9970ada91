# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virt-node process: one per node, as root. It does what virt-handler needs root for. README.md says why.

service.py       carries out a request about one launcher; with launcher_dir, launcher_process, network/, capabilities
server.py        the socket: which user may connect, how many requests may be open
devices.py       the devices for the kubelet, and the node's state; with device_plugins/, kvm
inotify.py       waits for files without polling
workers.py       a thread per piece of work, one at a time for each Pod
loop_watchdog.py ends a process whose event loop hangs

It has no token and no connection to an API server or libvirt, and parses nothing that a tenant wrote: it opens files,
verifies them, and sends descriptors. It decides nothing about machines.
"""
