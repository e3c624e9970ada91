# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMIs that a set creates, and their names."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from controlplane.virt_controller.replicaset.instance import build_vmi, names_of_batch
from tests.controlplane.virt_controller.members.stand import LABELS
from tests.controlplane.virt_controller.replicaset.stage import SET_UID, a_set


def names(uid: str = SET_UID, batches: int = 1, size: int = 1, **template: Any) -> tuple[str, ...]:
    replica_set = a_set(batches=batches, batchSize=size)
    meta = msgspec.structs.replace(replica_set.metadata, uid=uid)
    template_meta = msgspec.structs.replace(replica_set.spec.template.metadata, **template)
    spec = msgspec.structs.replace(
        replica_set.spec, template=msgspec.structs.replace(replica_set.spec.template, metadata=template_meta)
    )
    return names_of_batch(msgspec.structs.replace(replica_set, metadata=meta, spec=spec))


def test_names_of_a_batch_are_deterministic() -> None:
    assert names(size=3) == names(size=3)
    assert names(size=3)[:2] == names(size=2)


def test_names_are_unique_in_a_batch_a_set_and_between_sets() -> None:
    all_names = [*names(size=250), *names(batches=2, size=250), *names(uid="another", size=250)]
    assert len(set(all_names)) == 750


@pytest.mark.parametrize(
    ("template", "begins"),
    [
        pytest.param({}, "web", id="the set's name"),
        pytest.param({"generate_name": "node-"}, "node-", id="the template's generateName"),
        pytest.param({"name": "db", "generate_name": "node-"}, "db", id="the template's name"),
        pytest.param({"name": "d" * 250}, "d" * 55, id="a long one is cut"),
    ],
)
def test_a_name_has_the_prefix_of_kubevirt(template: dict[str, str], begins: str) -> None:
    (name,) = names(**template)
    assert re.fullmatch(re.escape(begins) + "[bcdfghjklmnpqrstvwxz2456789]{8}", name)
    assert len(name) <= 63


def test_the_size_of_a_batch_is_bounded() -> None:
    assert names(size=0) == ()
    assert names(size=-1) == ()
    assert len(names(size=20_000)) == 250


def test_a_vmi_has_the_template_as_stored() -> None:
    meta = {"name": "x", "labels": LABELS, "annotations": {"a": "b"}}
    vmi = build_vmi(a_set(template={"metadata": meta}), b'{"domain":{"newer":1},"a":null}', "n")
    assert vmi["spec"] == {"domain": {"newer": 1}}
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceReplicaSet",
        "name": "web",
        "uid": SET_UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert vmi["metadata"] == {
        "name": "n",
        "namespace": "default",
        "labels": LABELS,
        "annotations": {"a": "b"},
        "finalizers": ["kubevirt.io/foregroundDeleteVirtualMachine"],
        "ownerReferences": [owner],
    }


def test_one_replica_is_the_default() -> None:
    assert a_set().spec.replicas == 1
