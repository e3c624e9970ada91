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
from controlplane.virt_controller.vmi.launch import build_plan, derive_launch, guest_network
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
    assert (dhcp.hostname, dhcp.search) == ("web", ("vms.default.svc.cluster.local",))


def a_run(uid: str, vm_uid: str = VM_UID, kind: str = "VirtualMachine", **status: Any) -> VirtualMachineInstance:
    """One run of a VM that has an interface."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "web", "uid": vm_uid, "controller": True}
    metadata = {"name": "web", "namespace": "default", "uid": uid, "ownerReferences": [owner]}
    spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": NIC}, "networks": [{"name": "net", "pod": {}}]}
    return decode_vmi({"metadata": metadata, "spec": spec, "status": status})


def mac_of(vmi: VirtualMachineInstance, *, is_target: bool = False) -> str:
    launch = derive_launch(
        vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration(), is_target=is_target
    )
    assert launch.network is not None
    assert launch.plan.dhcp is not None
    assert launch.plan.dhcp.mac == launch.network.mac
    return launch.network.mac


def test_a_vm_has_the_same_mac_after_each_start() -> None:
    assert mac_of(a_run("first-run")) == mac_of(a_run("second-run"))


def test_a_recreated_vm_has_another_mac() -> None:
    assert mac_of(a_run("run")) != mac_of(a_run("run", vm_uid="of another VM of that name"))


def test_an_instance_without_a_vm_has_its_own_mac() -> None:
    of_set = [mac_of(a_run(uid, "set-uid", "VirtualMachineInstanceReplicaSet")) for uid in ("a", "b")]
    assert of_set == [guest_mac("a", "net"), guest_mac("b", "net")]


def test_a_guest_keeps_its_reported_mac_when_it_migrates() -> None:
    """It was started by a version that derived the address from the instance's UID."""
    old = guest_mac("run", "net")
    reported = [{"name": "net", "mac": old}, {"name": "", "mac": "02:00:00:00:00:01"}]
    vmi = a_run("run", interfaces=reported)
    assert mac_of(vmi, is_target=True) == old
    assert mac_of(vmi) == guest_mac(VM_UID, "net")


def test_the_pod_carries_the_network_of_its_plan() -> None:
    vmi = a_run("run")
    pod = build_launcher_pod(vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration())
    assert decode(pod, Pod).guest_network == GuestNetwork("net", mac_of(vmi), "10.0.2.0/24")


def test_the_guest_gets_one_host_name() -> None:
    """In DHCP, cloud-init, the Pod's own host name and its label."""
    volumes = [{"name": "seed", "cloudInitNoCloud": {"userData": "x"}}]
    vmi = with_spec(NIC, volumes=volumes, hostname="mail")
    launch = derive_launch(vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration())
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
    launch = derive_launch(
        with_spec(volumes=volumes),
        attempt=1,
        image="launcher:1",
        configuration=KubeVirtConfiguration(),
        image_pull_secrets=("two", "three"),
    )
    assert launch.pull_secrets == ("one", "three", "two")


def test_a_long_name_becomes_a_unique_label_value() -> None:
    first, second = vmi_label_value("n" * 64 + "a"), vmi_label_value("n" * 64 + "b")
    assert first != second
    assert len(first) == 63
    assert vmi_label_value("web") == "web"
    assert vmi_label_value("n" * 63) == "n" * 63


@pytest.mark.parametrize(("said", "policy"), [("", "IfNotPresent"), ("Always", "Always"), ("Never", "Never")])
def test_the_launcher_image_has_the_pull_policy_of_the_configuration(said: str, policy: str) -> None:
    configuration = KubeVirtConfiguration(image_pull_policy=said)
    launch = derive_launch(with_spec(NIC), attempt=1, image="launcher:1", configuration=configuration)
    assert launch.pull_policy == policy


@pytest.mark.parametrize(
    ("told", "held"),
    [
        ({"guestRequested": "2Gi", "guestCurrent": "2Gi"}, 0),
        ({"guestRequested": "3Gi", "guestCurrent": "2Gi"}, 3),
        ({"guestRequested": "2Gi", "guestCurrent": "3Gi"}, 3),
        ({"guestRequested": "1Gi", "guestCurrent": "99Ti"}, 4),
        ({"guestRequested": "lots", "guestCurrent": "more"}, 0),
        ({"guestRequested": "1Gi"}, 0),
        (None, 0),
    ],
    ids=[
        "what it is to have",
        "more is asked for",
        "it has more",
        "more than there is",
        "no amounts",
        "less",
        "nothing",
    ],
)
def test_a_pod_has_memory_for_the_amount_that_its_guest_arrives_with(told: dict[str, Any] | None, held: int) -> None:
    domain = {"memory": {"guest": "2Gi", "maxGuest": "4Gi"}}
    vmi = a_vmi(spec={"domain": domain}, **({} if told is None else {"memory": told}))
    usual = a_vmi(spec={"domain": domain})
    pods = [
        build_launcher_pod(name, attempt=1, image="i", configuration=KubeVirtConfiguration()) for name in (vmi, usual)
    ]
    had, has = (int(pod["spec"]["containers"][0]["resources"]["limits"]["memory"]) for pod in reversed(pods))
    assert has - had == (max(held - 2, 0) << 30)
    assert pods[0]["metadata"]["annotations"]["virtops.kubevirt/guest-memory"] == str(2 << 30)
