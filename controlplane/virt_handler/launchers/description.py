# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the domain XML from a VMI, its Pod and its launcher's report. Pure."""

from __future__ import annotations

from kubevirt_api.names import KVM_DEVICE
from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import parse_report
from controlplane.api.objects.claim import claimed_volumes
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.domain.volumes.registry import reported_images
from controlplane.links.node.messages import PORTS_LIMIT, Masquerade, PodInterface, Port
from controlplane.virt_handler.vmi.guest_network import interface_mac, network_cidr


def masquerade_of(vmi: VirtualMachineInstance, pod: Pod) -> Masquerade | None:
    """Return the network that the VMI's Pod needs; None when it has no interface. ValueError if the spec is invalid."""
    for interface in vmi.spec.domain.devices.interfaces:
        cidr = network_cidr(vmi, pod, interface)
        ports = tuple(Port("udp" if port.protocol.upper() == "UDP" else "tcp", port.port) for port in interface.ports)
        if len(ports) > PORTS_LIMIT:
            raise ValueError(f"interface {interface.name!r} lists {len(ports)} ports, more than {PORTS_LIMIT}")
        return Masquerade(cidr, ports)
    return None


def has_kvm(pod: Pod) -> bool:
    """Tell whether the launcher was given /dev/kvm."""
    return pod.was_given(KVM_DEVICE)


def describe_domain(vmi: VirtualMachineInstance, pod: Pod, report: bytes, interface: PodInterface | None) -> str:
    """Return the domain XML. ValueError (or NotBuildableError) names the obstacle."""
    links = {
        nic.name: Link(
            mac=interface_mac(vmi, pod, nic), tap=layout.TAP, mtu=1500 if interface is None else interface.mtu
        )
        for nic in vmi.spec.domain.devices.interfaces
    }
    facts = Facts(
        pod_uid=pod.uid,
        epoch=vmi.status.epoch,
        is_kvm=has_kvm(pod),
        report=parse_report(report, mounts=reported_images(vmi.spec), claims=claimed_volumes(vmi.spec.volumes)),
        links=links,
    )
    return render_text(build_domain(vmi, facts))
