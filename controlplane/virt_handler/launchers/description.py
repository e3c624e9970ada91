# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a VMI, its Pod and what its launcher reported to the text that libvirt gets. Pure."""

from __future__ import annotations

from kubevirt_api.names import KVM_DEVICE

from controlplane.api.launch_plan import parse_report
from controlplane.api.objects.claim import claimed_volumes
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.domain.codec import render_text
from controlplane.domain.mac import guest_mac
from controlplane.domain.network import masquerade_network
from controlplane.domain.volumes.registry import reported_images
from controlplane.links.node.messages import PORTS_LIMIT, Masquerade, PodInterface, Port


def masquerade_of(vmi: VirtualMachineInstance) -> Masquerade | None:
    """Say what network the VMI's Pod needs; None when the machine has no interface. ValueError names what is wrong."""
    networks = {one.name: one for one in vmi.spec.networks}
    for interface in vmi.spec.domain.devices.interfaces:
        network = networks.get(interface.name)
        if network is None or network.pod is None:
            raise ValueError(f"interface {interface.name!r} is not on the Pod network: only that is built")
        ports = tuple(Port("udp" if one.protocol.upper() == "UDP" else "tcp", one.port) for one in interface.ports)
        if len(ports) > PORTS_LIMIT:
            raise ValueError(f"interface {interface.name!r} lists {len(ports)} ports, more than {PORTS_LIMIT}")
        return Masquerade(str(masquerade_network(network.pod.vm_network_cidr).network), ports)
    return None


def has_kvm(pod: Pod) -> bool:
    """Tell whether the launcher was given /dev/kvm."""
    return pod.was_given(KVM_DEVICE)


def describe_domain(vmi: VirtualMachineInstance, pod: Pod, report: bytes, interface: PodInterface | None) -> str:
    """Render the domain. ValueError (NotBuildableError among them) names what stands in the way."""
    links = {
        one.name: Link(
            mac=guest_mac(vmi.metadata.uid, one.name, one.mac_address),
            tap=layout.TAP,
            mtu=1500 if interface is None else interface.mtu,
        )
        for one in vmi.spec.domain.devices.interfaces
    }
    facts = Facts(
        pod_uid=pod.uid,
        epoch=vmi.status.epoch,
        is_kvm=has_kvm(pod),
        report=parse_report(report, mounts=reported_images(vmi.spec), claims=claimed_volumes(vmi.spec.volumes)),
        links=links,
    )
    return render_text(build_domain(vmi, facts))
