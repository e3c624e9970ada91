# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations of the Node."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.links.node.messages import HostCpu
from controlplane.virt_handler.node.labels import (
    endpoint_annotations,
    is_for_control_plane,
    is_needed,
    leaving_patch,
    offers,
    processor_labels,
    serving_patch,
)
from controlplane.virt_node.kvm import KvmFinding

DOOR = endpoint_annotations("10.0.0.7", 8186, b"certificate")
USABLE, HANGS = KvmFinding(is_usable=True), KvmFinding(is_usable=False, reason="KVM_RUN hangs")


def a_node(labels: dict[str, str], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"labels": labels, "annotations": annotations or {}}}


SERVING = {"kubevirt.io/schedulable": "true", "kubevirt.io/kvm-usable": "true", "zone": "a"}


def test_a_serving_node_is_schedulable_and_shows_its_kvm_state() -> None:
    metadata = serving_patch(HANGS, 1_700_000_000.0, {})["metadata"]
    assert metadata["labels"] == {"kubevirt.io/schedulable": "true", "kubevirt.io/kvm-usable": "false"}
    assert metadata["annotations"] == {
        "kubevirt.io/heartbeat": "2023-11-14T22:13:20Z",
        "kubevirt.io/kvm-unusable-reason": "KVM_RUN hangs",
    }


ROLE, MASTER = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"


@pytest.mark.parametrize(
    ("labels", "taints", "expected"),
    [
        ({ROLE: ""}, [{"key": ROLE, "effect": "NoSchedule"}], True),
        ({ROLE: ""}, [{"key": "x", "effect": "NoSchedule"}, {"key": ROLE, "effect": "NoExecute"}], True),
        ({ROLE: "", MASTER: ""}, [{"key": MASTER, "effect": "NoSchedule"}], True),
        ({ROLE: ""}, [{"key": ROLE, "effect": "PreferNoSchedule"}], False),
        ({ROLE: ""}, [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], False),
        ({ROLE: ""}, [], False),
        ({}, [{"key": ROLE, "effect": "NoSchedule"}], False),
    ],
    ids=[
        "kept",
        "kept by more than one",
        "kept in OpenShift",
        "others rather",
        "cordoned",
        "of a small cluster",
        "of no such role",
    ],
)
def test_a_control_plane_node_has_label_and_taint(
    labels: dict[str, str], taints: list[dict[str, str]], expected: bool
) -> None:
    assert is_for_control_plane({"metadata": {"labels": labels}, "spec": {"taints": taints}}) is expected
    assert not is_for_control_plane({"metadata": {}})


def test_an_unschedulable_node_still_serves_its_guests() -> None:
    patch = serving_patch(USABLE, 0.0, DOOR, takes_machines=False)
    assert patch["metadata"]["labels"] == {"kubevirt.io/schedulable": "false", "kubevirt.io/kvm-usable": "true"}
    assert DOOR.items() <= patch["metadata"]["annotations"].items()


@pytest.mark.parametrize(("address", "said"), [("10.0.0.7", "10.0.0.7:8186"), ("fd00::7", "[fd00::7]:8186")])
def test_a_serving_node_announces_its_endpoint_and_certificate(address: str, said: str) -> None:
    annotations = endpoint_annotations(address, 8186, b"certificate")
    assert annotations == {
        "kubevirt.io/handler-address": said,
        "kubevirt.io/handler-certificate": "Y2VydGlmaWNhdGU=",
    }
    patch = serving_patch(USABLE, 0.0, annotations)
    assert is_needed(a_node(SERVING), patch), "it was another process's that served before"
    assert not is_needed(a_node(SERVING, annotations), patch)


def test_only_our_own_keys_are_written() -> None:
    for patch in (serving_patch(USABLE, 0.0, {}), serving_patch(HANGS, 0.0, DOOR), leaving_patch()):
        metadata = patch["metadata"]
        assert set(patch) == {"metadata"}
        assert all(key.startswith("kubevirt.io/") for part in metadata.values() for key in part)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (a_node({}), True),
        (a_node(SERVING), False),
        (a_node(SERVING, {"kubevirt.io/heartbeat": "long ago"}), False),
        (a_node({**SERVING, "kubevirt.io/schedulable": "false"}), True),
        (a_node({**SERVING, "kubevirt.io/kvm-usable": "false"}), True),
        (a_node(SERVING, {"kubevirt.io/kvm-unusable-reason": "old"}), True),
        ({"metadata": {}}, True),
    ],
    ids=["new", "as it is", "another heartbeat", "not schedulable", "KVM came", "reason left over", "bare"],
)
def test_a_patch_without_changes_is_not_sent(node: dict[str, Any], expected: bool) -> None:
    assert is_needed(node, serving_patch(USABLE, 0.0, {})) is expected


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        ({"tun": "1k", "kvm": "1k"}, True),
        ({"tun": "1000"}, False),
        ({"tun": "1000", "kvm": "0"}, False),
        (None, False),
    ],
    ids=["all", "one is missing", "one is unhealthy", "no status yet"],
)
def test_a_node_offers_what_is_allocatable(allocatable: dict[str, str] | None, expected: bool) -> None:
    assert offers({"status": {"allocatable": allocatable}}, ["tun", "kvm"]) is expected


def test_labels_that_an_administrator_keeps_are_not_touched() -> None:
    """As upstream: with the annotation an administrator sets the labels."""
    kept = a_node({"cpu-model.node.kubevirt.io/fake": "true"}, {"node-labeller.kubevirt.io/skip-node": ""})
    assert processor_labels(kept, HostCpu(model="EPYC", machines=("q35",))) == {}


def test_labels_of_a_former_processor_are_removed() -> None:
    former = {"cpu-model.node.kubevirt.io/qemu64": "true", "host-model-cpu.node.kubevirt.io/EPYC": "true", "zone": "a"}
    labels = processor_labels(a_node(former), HostCpu(model="EPYC", machines=("q35",)))
    assert labels == {
        "machine-type.node.kubevirt.io/q35": "true",
        "cpu-model.node.kubevirt.io/qemu64": None,
        "host-model-cpu.node.kubevirt.io/EPYC": "true",
        "cpu-model-migration.node.kubevirt.io/EPYC": "true",
    }
    node = a_node({"host-model-cpu.node.kubevirt.io/EPYC": "true", **SERVING})
    assert is_needed(node, serving_patch(USABLE, 0.0, {}, processor=processor_labels(node, None)))
    assert not is_needed(a_node(SERVING), serving_patch(USABLE, 0.0, {}, processor=processor_labels({}, None)))
