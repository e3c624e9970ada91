# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launch plan of a VMI."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from controlplane.api.launch_plan import ContainerDisk, EmptyDisk, parse_plan, render_plan
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.mac import guest_mac
from controlplane.virt_controller.vmi.launch import build_plan, guest_hostname
from tests.controlplane.virt_controller.builders import VMI_UID, a_vmi

NIC = {"interfaces": [{"name": "net", "masquerade": {}}]}


def with_spec(devices: dict[str, Any] | None = None, **spec: Any) -> VirtualMachineInstance:
    domain = {"memory": {"guest": "64Mi"}, "firmware": {"uuid": "the-uuid"}, "devices": devices or {}}
    return a_vmi(spec={"domain": domain, **spec})


def test_disks_are_planned_by_volume() -> None:
    volumes = [
        {"name": "root", "containerDisk": {"image": "guest:1", "path": "/disk/a.qcow2"}},
        {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
    ]
    plan = build_plan(with_spec(volumes=volumes, terminationGracePeriodSeconds=7))
    assert plan.container_disks == (ContainerDisk("root", "/disk/a.qcow2"),)
    assert plan.empty_disks == (EmptyDisk("scratch", 1 << 30),)
    assert (plan.domain, plan.title, plan.grace_period_seconds, plan.dhcp) == (VMI_UID, "default/web", 7, None)
    assert parse_plan(render_plan(plan)) == plan


def test_the_lease_is_for_the_guest_s_address_and_mac() -> None:
    networks = [{"name": "net", "pod": {"vmNetworkCIDR": "10.1.0.0/28"}}]
    dhcp = build_plan(with_spec(NIC, networks=networks, subdomain="vms")).dhcp
    assert dhcp is not None
    assert (dhcp.address, dhcp.router, dhcp.bridge, dhcp.mtu) == ("10.1.0.2/28", "10.1.0.1", "k6t-eth0", None)
    assert dhcp.mac == guest_mac(VMI_UID, "net")
    assert (dhcp.hostname, dhcp.search) == ("web", ("vms.default.svc.cluster.local",))


def test_a_mac_from_the_spec_is_taken() -> None:
    named = {"interfaces": [{"name": "net", "masquerade": {}, "macAddress": "02:AB:00:00:00:01"}]}
    dhcp = build_plan(with_spec(named)).dhcp
    assert dhcp is not None
    assert dhcp.mac == "02:ab:00:00:00:01"


def test_cloud_init_inline_and_from_secrets() -> None:
    source = {
        "userDataBase64": base64.b64encode(b"#cloud-config\n").decode(),
        "networkDataSecretRef": {"name": "net-secret"},
    }
    (seed,) = build_plan(with_spec(volumes=[{"name": "seed", "cloudInitNoCloud": source}])).cloud_init
    assert json.loads(seed.meta_data) == {"instance-id": "the-uuid", "local-hostname": "web"}
    assert (seed.user_data, seed.user_data_file) == ("#cloud-config\n", None)
    assert (seed.network_data, seed.network_data_file) == (
        None,
        "/run/secrets/cloud-init/seed/networkdata/networkdata",
    )


def test_data_that_is_no_text_is_refused_by_name() -> None:
    source = {"userDataBase64": base64.b64encode(b"\xff\xfe").decode()}
    with pytest.raises(ValueError, match="volume seed: userDataBase64"):
        build_plan(with_spec(volumes=[{"name": "seed", "cloudInitNoCloud": source}]))


NAMES = {
    "the object's": ("", "web.example", "web"),
    "the spec's": ("Mail", "web", "mail"),
    "long": ("", "n" * 100, "n" * 63),
}


@pytest.mark.parametrize(("hostname", "name", "expected"), NAMES.values(), ids=NAMES.keys())
def test_the_guest_s_name(hostname: str, name: str, expected: str) -> None:
    vmi = with_spec(hostname=hostname)
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, name=name))
    assert guest_hostname(vmi) == expected
