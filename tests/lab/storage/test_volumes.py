# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which volumes are created for which claims, and which are removed."""

from __future__ import annotations

from typing import Any

import pytest

from lab.paths import State
from lab.storage.volumes import Provision, Reclaim, build_volume, decide, node_of, parse_quantity

STATE = State(name="t")
OURS = {"volume.kubernetes.io/storage-provisioner": "lab.virtops/storage"}
CHOSEN = {**OURS, "volume.kubernetes.io/selected-node": "node-2"}


def a_claim(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    defaults = {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Mi"}},
    }
    metadata = {"namespace": "default", "name": "c", "uid": "u1", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {**defaults, **spec}}


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        pytest.param(a_claim(CHOSEN), "node-2", id="on the selected node"),
        pytest.param(a_claim(OURS, storageClassName="shared", accessModes=["ReadWriteMany"]), None, id="shared"),
        pytest.param(a_claim(CHOSEN, accessModes=["ReadWriteMany"]), None, id="many nodes in the default class"),
    ],
)
def test_a_claim_gets_a_volume(claim: dict[str, Any], node: str | None) -> None:
    (made,) = decide([claim], [], STATE)
    assert isinstance(made, Provision)
    volume = build_volume(made, STATE)
    assert (made.node, node_of(volume)) == (node, node)
    assert volume["spec"]["claimRef"]["uid"] == "u1"
    assert decide([claim], [volume], STATE) == []


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(), id="no provisioner named"),
        pytest.param(a_claim(OURS), id="no node chosen yet"),
        pytest.param(a_claim(CHOSEN, volumeName="pv"), id="has a volume"),
        pytest.param(a_claim({"volume.kubernetes.io/storage-provisioner": "other"}), id="another provisioner's"),
    ],
)
def test_a_claim_gets_no_volume(claim: dict[str, Any]) -> None:
    assert decide([claim], [], STATE) == []


def test_a_block_claim_gets_a_device_node_and_a_filesystem_claim_a_directory() -> None:
    paths = {}
    for mode in ("Block", "Filesystem"):
        (made,) = decide([a_claim(CHOSEN, volumeMode=mode)], [], STATE)
        assert isinstance(made, Provision)
        paths[mode] = build_volume(made, STATE)["spec"]["local"]["path"].rsplit("/", 1)[-1]
    assert paths == {"Block": "device", "Filesystem": "files"}


@pytest.mark.parametrize(
    ("phase", "policy", "removed"),
    [("Released", "Delete", True), ("Bound", "Delete", False), ("Released", "Retain", False)],
)
def test_a_released_volume_with_policy_delete_is_removed(phase: str, policy: str, removed: bool) -> None:
    (made,) = decide([a_claim(CHOSEN)], [], STATE)
    assert isinstance(made, Provision)
    volume = build_volume(made, STATE)
    volume["spec"]["persistentVolumeReclaimPolicy"] = policy
    volume["status"] = {"phase": phase}
    path = STATE.node("node-2").volumes / "pvc-u1"
    assert decide([], [volume], STATE) == ([Reclaim(name="pvc-u1", path=path)] if removed else [])


def test_a_foreign_volume_is_not_removed() -> None:
    other = {"metadata": {"name": "pv"}, "spec": {}, "status": {"phase": "Released"}}
    assert decide([], [other], STATE) == []


@pytest.mark.parametrize(
    ("text", "size"), [("10", 10), ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 3 << 29), ("2T", 2 * 10**12)]
)
def test_a_quantity_is_a_number_of_bytes(text: str, size: int) -> None:
    assert parse_quantity(text) == size


def test_a_bad_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity("much")
