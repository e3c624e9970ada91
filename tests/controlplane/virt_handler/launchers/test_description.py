# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The domain XML, derived from a VMI, its Pod and its launcher's report."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.links.node.messages import Masquerade, Port
from controlplane.virt_handler.launchers.description import describe_domain, masquerade_of
from tests.controlplane.virt_handler.builders import ETH0, POD_UID, VMI_UID, a_pod, a_vmi, pod_object

REPORT = json.dumps(
    {"version": 1, "container_disks": [{"volume": "root", "path": "/img/volumes/root/disk/d.img", "format": "raw"}]}
).encode()


def domain_of(pod: Pod) -> ElementTree.Element:
    return ElementTree.fromstring(describe_domain(a_vmi(), pod, REPORT, ETH0))


def test_the_domain_name_is_the_uid_and_its_metadata_the_identity() -> None:
    domain = domain_of(a_pod())
    assert domain.findtext("name") == VMI_UID
    identity = domain.find("metadata/*")
    assert identity is not None
    assert (identity.get("uid"), identity.get("pod"), identity.get("epoch")) == (VMI_UID, POD_UID, "1")


@pytest.mark.parametrize(("resource", "kind"), [("devices.kubevirt.io/kvm", "kvm"), ("cpu", "qemu")])
def test_a_domain_uses_kvm_only_if_its_pod_has_the_device(resource: str, kind: str) -> None:
    body = pod_object()
    body["spec"]["containers"] = [{"name": "compute", "resources": {"limits": {resource: "1"}}}]
    assert domain_of(decode(body, Pod)).get("type") == kind


def test_the_interface_is_the_tap_with_the_pods_mtu() -> None:
    interface = domain_of(a_pod()).find("devices/interface")
    assert interface is not None
    elements = {element.tag: element.attrib for element in interface}
    assert elements["target"] == {"dev": "tap0", "managed": "no"}
    assert elements["mtu"] == {"size": "1450"}
    assert elements["mac"] == {"address": "02:00:00:00:00:99"}


def test_a_report_without_the_disk_is_refused() -> None:
    with pytest.raises(ValueError, match="does not list exactly the expected volumes"):
        describe_domain(a_vmi(), a_pod(), b'{"version": 1, "container_disks": []}', ETH0)


def devices(**interface: object) -> dict[str, object]:
    return {
        "memory": {"guest": "64Mi"},
        "devices": {"interfaces": [{"name": "default", "masquerade": {}, **interface}]},
    }


def test_ports_and_cidr_of_the_spec_shape_the_pods_network() -> None:
    vmi = a_vmi(
        domain=devices(ports=[{"port": 80}, {"port": 53, "protocol": "UDP"}, {"port": 67, "protocol": "udp"}]),
        networks=[{"name": "default", "pod": {"vmNetworkCIDR": "10.9.0.0/28"}}],
    )
    assert masquerade_of(vmi, a_pod()) == Masquerade("10.9.0.0/28", (Port("tcp", 80), Port("udp", 53), Port("udp", 67)))


def test_a_vmi_without_interfaces_needs_no_network() -> None:
    assert masquerade_of(a_vmi(domain={"memory": {"guest": "64Mi"}}, networks=[]), a_pod()) is None


@pytest.mark.parametrize("networks", [[], [{"name": "default"}]], ids=["unknown", "of another kind"])
def test_an_interface_on_another_network_is_refused_by_name(networks: list[dict[str, object]]) -> None:
    with pytest.raises(ValueError, match="interface 'default' is not on the Pod network"):
        masquerade_of(a_vmi(networks=networks), a_pod())
