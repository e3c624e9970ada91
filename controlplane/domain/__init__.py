# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launch of a VMI means for its Pod, its launch plan and its libvirt domain. Pure: no I/O.

builders: from a VMI to the domain's XML classes (libvirt_domain). volumes: what each kind of volume means.
guest_identity, network, mac, layout: what several processes derive alike. agent, guest_details: requests to the guest's
agent and its responses. state, observed: what libvirt reports. migratable, host_cpu: where a guest can move.
"""
