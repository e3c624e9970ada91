# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target Pod of a migration: its name, anti-affinity to its source, and the source's images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevirt_api.names import MIGRATION_JOB

from controlplane.api.launch_plan import PLAN_ANNOTATION, parse_plan
from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.virt_controller.migration.target_pod import build_target_pod
from controlplane.virt_controller.migration.world import target_name
from tests.controlplane.virt_controller.builders import POD_UID
from tests.controlplane.virt_controller.migration.worlds import a_migration, a_world, an_instance

DISK = {"volumes": [{"name": "root", "containerDisk": {"image": "registry.example/os:latest"}}]}
DEVICES = {"domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "64Mi"}}}
PINNED = "registry.example/os@sha256:" + "0" * 64


def build(source: Pod | None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    world = a_world(a_migration("Pending"), an_instance(spec={**DEVICES, **DISK, **spec}))
    world = replace(world, launchers=() if source is None else (source,))
    return build_target_pod(
        world,
        image="launcher:2",
        image_pull_secrets=(),
        claims=NO_CLAIMS,
        excluded_nodes=frozenset({"node-9"}),
        source_labels=labels or {},
    )


def a_source(volume: str, image: str) -> Pod:
    mounts = [{"name": volume, "volumeStatus": {"image": {"imageRef": image}}}, {"name": "run"}]
    status = {"containerStatuses": [{"name": "compute", "volumeMounts": mounts}]}
    return decode({"metadata": {"name": "pod", "uid": POD_UID}, "status": status}, Pod)


def image_of(body: dict[str, Any]) -> tuple[str, str]:
    return next(
        (volume["name"], volume["image"]["reference"]) for volume in body["spec"]["volumes"] if "image" in volume
    )


HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("requested", "reported", "expected"),
    [
        ("registry.example/os:42", f"registry.example/os@sha256:{HEX}", f"registry.example/os@sha256:{HEX}"),
        (
            "registry.example:5000/os",
            f"registry.example:5000/os@sha256:{HEX}",
            f"registry.example:5000/os@sha256:{HEX}",
        ),
        ("fedora:42", f"docker.io/library/fedora@sha256:{HEX}", f"fedora@sha256:{HEX}"),
        ("kubevirt/fedora", f"docker.io/kubevirt/fedora@sha256:{HEX}", f"kubevirt/fedora@sha256:{HEX}"),
        ("index.docker.io/a/b", f"docker.io/a/b@sha256:{HEX}", f"index.docker.io/a/b@sha256:{HEX}"),
        ("registry.example/os:42", f"registry.example/other@sha256:{HEX}", "registry.example/os:42"),
        ("registry.example/os:42", f"evil.example/registry.example/os@sha256:{HEX}", "registry.example/os:42"),
        ("registry.example/os:42", "registry.example/os@sha256:0", "registry.example/os:42"),
        ("registry.example/os:42", f"registry.example/os@sha256:{HEX[1:]}/", "registry.example/os:42"),
        ("registry.example/os:42", f"registry.example/os@sha256:{HEX}@sha256:{HEX}", "registry.example/os:42"),
        (PINNED, f"registry.example/os@sha256:{HEX}", PINNED),
        *(("registry.example/os:42", text, "registry.example/os:42") for text in ("sha256:" + HEX, "x/os:latest", "")),
    ],
)
def test_the_sources_kubelet_cannot_choose_the_repository(requested: str, reported: str, expected: str) -> None:
    """Otherwise a compromised kubelet could make other nodes pull any image."""
    disk = {"volumes": [{"name": "disk", "containerDisk": {"image": requested}}]}
    name, reference = image_of(build(None, **disk))
    assert reference == requested
    assert image_of(build(a_source(name, reported), **disk))[1] == expected


def test_a_pinned_image_stays_pinned_when_the_kubelet_reports_no_digest() -> None:
    volumes = [{"name": "run", "emptyDir": {}}, {"name": image_of(build(None))[0], "image": {"reference": PINNED}}]
    migrated = decode({"metadata": {"name": "pod", "uid": POD_UID}, "spec": {"volumes": volumes}}, Pod)
    assert image_of(build(migrated))[1] == PINNED


def test_a_target_has_a_readiness_gate() -> None:
    assert build(None)["spec"]["readinessGates"] == [{"conditionType": "kubevirt.io/virtual-machine-unpaused"}]


def test_a_target_avoids_quarantined_nodes() -> None:
    nodes = build(None)["spec"]["affinity"]["nodeAffinity"]
    assert "node-9" in str(nodes["requiredDuringSchedulingIgnoredDuringExecution"])


def test_its_name_includes_both_uids_and_has_a_limited_length() -> None:
    short = target_name("web", "bbbbbbbb-1", "dddddddd-1")
    assert short == "virt-launcher-web-bbbbbbbb-mdddddddd"
    long = target_name("w." * 120, "bbbbbbbb-1", "dddddddd-1")
    assert len(long) <= 63
    assert "." not in long
    assert long.endswith("-bbbbbbbb-mdddddddd")


ASKED = {"cpu-model-migration.node.kubevirt.io/qemu64": "true", "zone": "a"}
EPYC = {"host-model-cpu.node.kubevirt.io/EPYC": "true"}


def on_kvm(*, has_moved: bool = False, **spec: Any) -> Pod:
    compute = {"name": "compute", "resources": {"limits": {"devices.kubevirt.io/kvm": "1"}}}
    meta = {"name": "pod", "uid": POD_UID, "labels": {MIGRATION_JOB: "earlier"} if has_moved else {}}
    return decode({"metadata": meta, "spec": {"containers": [compute], **spec}}, Pod)


def test_a_guest_that_uses_host_cpu_features_needs_a_node_with_a_compatible_cpu() -> None:
    selector = build(on_kvm(), EPYC, nodeSelector=ASKED)["spec"]["nodeSelector"]
    assert selector["cpu-model-migration.node.kubevirt.io/EPYC"] == "true"
    assert selector.items() >= ASKED.items()


def test_a_guest_that_has_migrated_before_keeps_its_first_requirements() -> None:
    before = {"cpu-model-migration.node.kubevirt.io/Skylake-Client": "true"}
    selector = build(on_kvm(nodeSelector=before, has_moved=True), EPYC)["spec"]["nodeSelector"]
    assert selector.items() >= before.items()
    assert "cpu-model-migration.node.kubevirt.io/EPYC" not in selector


def test_a_selector_of_the_start_is_not_taken_for_the_cpu_requirement() -> None:
    """The Pod still has it from its start; it promises less than the guest's CPU needs."""
    before = {"cpu-model-migration.node.kubevirt.io/Nehalem": "true"}
    selector = build(on_kvm(nodeSelector=before), EPYC)["spec"]["nodeSelector"]
    assert selector["cpu-model-migration.node.kubevirt.io/EPYC"] == "true"


def test_a_guest_needs_no_label_of_its_board() -> None:
    """QEMU comes with the launcher's image, and a node whose boards are unknown has no labels of them."""
    world = a_world(a_migration("Pending"), an_instance(machine={"type": "pc-q35-10.0"}, spec={**DEVICES, **DISK}))
    selector = build_target_pod(world, image="l", image_pull_secrets=(), claims=NO_CLAIMS, excluded_nodes=frozenset())
    assert "machine-type" not in str(selector["spec"]["nodeSelector"])


def test_an_emulated_guest_fits_every_node() -> None:
    assert "cpu-model" not in str(build(a_source("root", PINNED), EPYC)["spec"]["nodeSelector"])


def test_a_guest_on_a_node_without_cpu_labels_fits_no_node() -> None:
    with pytest.raises(ValueError, match="does not say which processor"):
        build(on_kvm())


def test_a_guest_that_has_not_arrived_yet_passes_its_probes() -> None:
    """The kubelet probes a Pod's address from the start, before the guest answers."""
    body = build(None, livenessProbe={"tcpSocket": {"port": 22}})

    (container,) = body["spec"]["containers"]
    plan = parse_plan(body["metadata"]["annotations"][PLAN_ANNOTATION].encode())
    assert container["startupProbe"]["exec"]["command"][-1] == "startupProbe"
    assert [probe.name for probe in plan.probes] == ["startupProbe"]
