# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MAC address and the network of a guest, as its launch plan has them. Pure.

The plan of an older version has neither. Both are then derived as that version did, so the guest keeps its address.
"""

from __future__ import annotations

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.devices import Interface
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.mac import guest_mac, is_guest_mac
from controlplane.domain.network import masquerade_network


def interface_mac(vmi: VirtualMachineInstance, pod: Pod, interface: Interface) -> str:
    """Return the MAC address of an interface. Raises ValueError if the spec's address is invalid."""
    planned = pod.guest_network
    if planned is not None and planned.interface == interface.name and is_guest_mac(planned.mac):
        return planned.mac
    return guest_mac(vmi.metadata.uid, interface.name, interface.mac_address)


def network_cidr(vmi: VirtualMachineInstance, pod: Pod, interface: Interface) -> str:
    """Return the network between the Pod and its guest. Raises ValueError with the reason if there is none."""
    network = next((candidate for candidate in vmi.spec.networks if candidate.name == interface.name), None)
    if network is None or network.pod is None:
        raise ValueError(f"interface {interface.name!r} is not on the Pod network, the only one that is implemented")
    planned = pod.guest_network
    is_planned = planned is not None and planned.interface == interface.name
    cidr = planned.cidr if planned is not None and is_planned else network.pod.vm_network_cidr
    return str(masquerade_network(cidr).network)
