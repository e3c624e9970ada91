# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launch plan that is derived from a VMI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.admission.validate.check import check_instance
from controlplane.api.launch_plan import (
    PLAN_LIMIT_BYTES,
    ContainerDisk,
    EmptyDisk,
    GuestNetwork,
    LaunchPlan,
    parse_plan,
    render_plan,
)
from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.vmi_label import vmi_label_value
from controlplane.domain.guest_identity import guest_identity
from controlplane.domain.mac import guest_mac
from controlplane.virt_controller.vmi.launch import Launch, build_plan, derive_launch, guest_network
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from tests.controlplane.virt_controller.builders import VM_UID, VMI_UID, a_vmi

NIC = {"interfaces": [{"name": "net", "masquerade": {}}]}


def with_spec(devices: dict[str, Any] | None = None, **spec: Any) -> VirtualMachineInstance:
    domain = {"memory": {"guest": "64Mi"}, "firmware": {"uuid": "the-uuid"}, "devices": devices or {}}
    return a_vmi(spec={"domain": domain, **spec})


def plan_of(vmi: VirtualMachineInstance) -> LaunchPlan:
    return build_plan(vmi, guest_identity(vmi), 1 << 30, network=guest_network(vmi, is_target=False))


def test_the_plan_has_the_domain_and_its_steps() -> None:
    volumes = [
        {"name": "root", "containerDisk": {"image": "guest:1", "path": "/disk/a.qcow2"}},
        {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
    ]
    plan = plan_of(with_spec(volumes=volumes, terminationGracePeriodSeconds=7))
    assert plan.container_disks == (ContainerDisk("root", "/disk/a.qcow2"),)
    assert plan.empty_disks == (EmptyDisk("scratch", 1 << 30),)
    assert (plan.domain, plan.title, plan.grace_period_seconds, plan.dhcp) == (VMI_UID, "default/web", 7, None)
    assert parse_plan(render_plan(plan).encode()) == plan


def a_seed(number: int, **source: Any) -> dict[str, Any]:
    return {"name": f"{'v' * 55}-{number:03}", "cloudInitNoCloud": source}


def test_everything_that_admission_accepts_fits_into_a_plan() -> None:
    """The maximum number of volumes with the longest names and the largest inline data."""
    secrets = {"secretRef": {"name": "s"}, "networkDataSecretRef": {"name": "s"}}
    texts = {"userData": "\x01" * 1950, "networkData": "\x01" * 1950}
    volumes = [a_seed(number, **(texts if number < 2 else secrets)) for number in range(256)]
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": NIC}, "hostname": "h" * 63, "subdomain": "s" * 63}
    spec |= {"networks": [{"name": "net", "pod": {}}], "volumes": volumes}
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "n"}, "spec": spec}
    assert check_instance(vmi, KubeVirtConfiguration()) == []

    text = render_plan(plan_of(a_vmi(spec=spec)))

    assert 160 * 1024 < len(text.encode()) <= PLAN_LIMIT_BYTES


def test_a_plan_that_is_too_large_names_the_remedy() -> None:
    volumes = [a_seed(number, userData="x" * 2000) for number in range(100)]
    with pytest.raises(ValueError, match=f"at most {PLAN_LIMIT_BYTES} fit; put cloud-init data into Secrets"):
        render_plan(plan_of(with_spec(volumes=volumes)))


def test_the_lease_is_for_the_guest_s_address_and_mac() -> None:
    networks = [{"name": "net", "pod": {"vmNetworkCIDR": "10.1.0.0/28"}}]
    dhcp = plan_of(with_spec(NIC, networks=networks, subdomain="vms")).dhcp
    assert dhcp is not None
    assert (dhcp.address, dhcp.router, dhcp.bridge, dhcp.mtu) == ("10.1.0.2/28", "10.1.0.1", "k6t-eth0", None)
    assert dhcp.mac == guest_mac(VM_UID, "net")
    assert (dhcp.hostname, dhcp.service_domain) == ("web", "vms.default.svc")


def a_run(
    uid: str = "run", *, mac: str = "", owner: Any = ("VirtualMachine", VM_UID), **status: Any
) -> VirtualMachineInstance:
    """One run of a machine that has an interface."""
    kind, owner_uid = owner
    reference = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "web", "uid": owner_uid, "controller": True}
    metadata = {"name": "web", "namespace": "default", "uid": uid, "ownerReferences": [reference]}
    devices = {"interfaces": [{"name": "net", "masquerade": {}, **({"macAddress": mac} if mac else {})}]}
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": devices}, "networks": [{"name": "net", "pod": {}}]}
    return decode_vmi({"metadata": metadata, "spec": spec, "status": status})


def launched(vmi: VirtualMachineInstance, **options: Any) -> Launch:
    defaults: dict[str, Any] = {"attempt": 1, "image": "launcher:1", "configuration": KubeVirtConfiguration()}
    return derive_launch(vmi, **{**defaults, **options})


OWN_MAC, OLD_MAC = "02:AB:00:00:00:01", guest_mac("run", "net")
REPORTED = {"interfaces": [{"name": "net", "mac": OLD_MAC}, {"name": "", "mac": "02:00:00:00:00:01"}]}
"""By a version that derived the address from the instance's UID."""
MACS: dict[str, tuple[VirtualMachineInstance, bool, str]] = {
    "a run of a VM": (a_run("first"), False, guest_mac(VM_UID, "net")),
    "its next run": (a_run("second"), False, guest_mac(VM_UID, "net")),
    "a recreated VM": (a_run(owner=("VirtualMachine", "another")), False, guest_mac("another", "net")),
    "of a replica set": (a_run("a", owner=("VirtualMachineInstanceReplicaSet", "s")), False, guest_mac("a", "net")),
    "from the spec": (a_run(mac=OWN_MAC), False, OWN_MAC.lower()),
    "a migrating guest": (a_run(**REPORTED), True, OLD_MAC),
    "a new start after that": (a_run(**REPORTED), False, guest_mac(VM_UID, "net")),
}


@pytest.mark.parametrize(("vmi", "is_target", "mac"), MACS.values(), ids=MACS)
def test_the_mac_address(vmi: VirtualMachineInstance, is_target: bool, mac: str) -> None:
    """A VM keeps it over its runs, and a guest keeps what it has when it migrates."""
    launch = launched(vmi, is_target=is_target)
    assert launch.network is not None
    assert launch.plan.dhcp is not None
    assert (launch.plan.dhcp.mac, launch.network.mac) == (mac, mac)


def test_the_pod_carries_the_network_of_its_plan() -> None:
    pod = build_launcher_pod(a_run(), attempt=1, image="launcher:1", configuration=KubeVirtConfiguration())
    assert decode(pod, Pod).guest_network == GuestNetwork("net", guest_mac(VM_UID, "net"), "10.0.2.0/24")


def test_the_guest_gets_one_host_name() -> None:
    """In DHCP, cloud-init, the Pod's own host name and its label."""
    volumes = [{"name": "seed", "cloudInitNoCloud": {"userData": "x"}}]
    vmi = with_spec(NIC, volumes=volumes, hostname="mail")
    launch = launched(vmi)
    pod = build_launcher_pod(vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration())
    (seed,), dhcp = launch.plan.cloud_init, launch.plan.dhcp
    assert dhcp is not None
    assert {
        launch.guest.hostname,
        dhcp.hostname,
        json.loads(seed.meta_data)["local-hostname"],
        pod["spec"]["hostname"],
        pod["metadata"]["labels"]["vm.kubevirt.io/name"],
    } == {"mail"}


def test_pull_secrets_are_named_once() -> None:
    volumes = [
        {"name": name, "containerDisk": {"image": "guest:1", "imagePullSecret": secret}}
        for name, secret in (("a", "two"), ("b", "one"), ("c", "two"), ("d", ""))
    ]
    launch = launched(with_spec(volumes=volumes), image_pull_secrets=("two", "three"))
    assert launch.pull_secrets == ("one", "three", "two")


def test_a_long_name_becomes_a_unique_label_value() -> None:
    first, second = vmi_label_value("n" * 64 + "a"), vmi_label_value("n" * 64 + "b")
    assert first != second
    assert len(first) == 63
    assert vmi_label_value("web") == "web"
    assert vmi_label_value("n" * 63) == "n" * 63


@pytest.mark.parametrize(("configured", "policy"), [("", "IfNotPresent"), ("Always", "Always"), ("Never", "Never")])
def test_the_launcher_image_has_the_pull_policy_of_the_configuration(configured: str, policy: str) -> None:
    launch = launched(with_spec(NIC), configuration=KubeVirtConfiguration(image_pull_policy=configured))
    assert launch.pull_policy == policy


@pytest.mark.parametrize(
    ("status", "gibibytes"),
    [
        ({"guestRequested": "2Gi", "guestCurrent": "2Gi"}, 0),
        ({"guestRequested": "3Gi", "guestCurrent": "2Gi"}, 3),
        ({"guestRequested": "2Gi", "guestCurrent": "3Gi"}, 3),
        ({"guestRequested": "1Gi", "guestCurrent": "99Ti"}, 4),
        ({"guestRequested": "lots", "guestCurrent": "more"}, 0),
        ({"guestRequested": "1Gi"}, 0),
        (None, 0),
    ],
    ids=["as its spec", "more requested", "more current", "more than its maximum", "malformed", "less", "none"],
)
def test_a_pod_has_memory_for_the_amount_that_its_guest_arrives_with(status: Any, gibibytes: int) -> None:
    domain = {"memory": {"guest": "2Gi", "maxGuest": "4Gi"}}
    pods = [
        build_launcher_pod(vmi, attempt=1, image="i", configuration=KubeVirtConfiguration())
        for vmi in (a_vmi(spec={"domain": domain}), a_vmi(spec={"domain": domain}, memory=status))
    ]
    usual, limit = (int(pod["spec"]["containers"][0]["resources"]["limits"]["memory"]) for pod in pods)
    assert limit - usual == (max(gibibytes - 2, 0) << 30)
    assert pods[1]["metadata"]["annotations"]["virtops.kubevirt/guest-memory"] == str(2 << 30)
