# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virt-node process: one per node, root, for what only root can do for virt-handler. README.md says why.

service.py   answers a request about one launcher; with launcher_dir, launcher_process, network/, capabilities
server.py    who may ask, on which socket
offer.py     devices for the kubelet, and what is told of them; with device_plugins/, kvm
inotify.py   waiting without polling

It has no token, speaks to no API server and to no libvirt, and reads nothing that a tenant wrote: it opens, proves and
hands over. It decides nothing about machines.
"""
