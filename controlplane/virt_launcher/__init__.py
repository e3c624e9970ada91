# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virt-launcher process, one per launcher Pod: prepares disks, runs libvirtd, reports how the guest ended.

__main__.py      the sequence, and the exit code
probe.py         the program that the kubelet runs for a probe
capabilities.py  the program that asks QEMU, once per node, what it can do
disks/           overlays, sparse disks, claims, cloud-init seeds
guest/           libvirtd and its restarts; the end of the guest; what runs beside it
logs/            the serial console's log, copied to standard output; QEMU's own messages
probes/          responses to the kubelet's probes
dhcp/            one lease for one guest

It uses the standard library, the launch plan (controlplane.api.launch_plan), controlplane.domain and
controlplane.hypervisor. It has no credentials and no connection to an API server, so a guest continues to run when all
other components are down.
"""
