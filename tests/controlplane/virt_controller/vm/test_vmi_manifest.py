# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI that a VM creates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import FIXED_TEMPLATE_HASH, TEMPLATE_HASH, TEMPLATE_METADATA_HASH

from controlplane.api.objects.decode import decode_vm
from controlplane.api.objects.meta import ObjectMeta
from controlplane.virt_controller.vm.template import fixed_hash, template_hash
from controlplane.virt_controller.vm.template_metadata import metadata_hash
from controlplane.virt_controller.vm.vmi_manifest import build_vmi, run_always_patch
from tests.controlplane.virt_controller.builders import VM_UID, a_vm

TEMPLATE = b'{"domain":{"memory":{"guest":"64Mi"}}}'


HASHES = {TEMPLATE_HASH: template_hash(TEMPLATE), FIXED_TEMPLATE_HASH: fixed_hash(TEMPLATE)}


def built(template: bytes = TEMPLATE, **metadata: Any) -> Any:
    """Build the VMI of a VM with its own labels and annotations. metadata: of the template."""
    vm = a_vm()
    template_of_vm = msgspec.structs.replace(vm.spec.template, metadata=ObjectMeta(**metadata))
    own = msgspec.structs.replace(vm.metadata, labels={"of": "the VM"}, annotations={"of": "the VM"})
    spec = msgspec.structs.replace(vm.spec, template=template_of_vm)
    return build_vmi(msgspec.structs.replace(vm, metadata=own, spec=spec), template)


def test_name_labels_and_owner_come_from_the_vm_and_its_template() -> None:
    meta = built(labels={"app": "web"})["metadata"]
    assert (meta["name"], meta["namespace"], meta["labels"]) == ("web", "default", {"app": "web"})
    of_metadata = {TEMPLATE_METADATA_HASH: metadata_hash(ObjectMeta(labels={"app": "web"}))}
    assert meta["annotations"] == {"kubevirt.io/vm-generation": "3", **HASHES, **of_metadata}
    assert meta["finalizers"] == ["kubevirt.io/foregroundDeleteVirtualMachine"]
    reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": VM_UID}
    assert meta["ownerReferences"] == [{**reference, "controller": True, "blockOwnerDeletion": True}]


def test_a_template_cannot_set_the_template_hash() -> None:
    """Otherwise a template could hide its own changes."""
    given = {
        TEMPLATE_HASH: "x",
        FIXED_TEMPLATE_HASH: "y",
        TEMPLATE_METADATA_HASH: "z",
        "kubevirt.io/vm-generation": "9",
        "team": "a",
    }
    annotations = built(annotations=given)["metadata"]["annotations"]
    of_metadata = {TEMPLATE_METADATA_HASH: metadata_hash(ObjectMeta())}
    assert annotations == {**HASHES, **of_metadata, "kubevirt.io/vm-generation": "3", "team": "a"}


def test_the_firmware_uuid_is_the_same_at_every_start() -> None:
    """UUIDv5 of the VM's name, as upstream has it."""
    first, second = (build_vmi(a_vm(), TEMPLATE)["spec"]["domain"]["firmware"]["uuid"] for _unused in range(2))
    assert first == second
    assert first[14] == "5"


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [('"5d307ca9-b3ef-428c-8861-06e72d69f223"', True), ('""', False)],
    ids=["a UUID", "empty"],
)
def test_a_firmware_uuid_of_the_template_is_kept(given: str, is_kept: bool) -> None:
    vmi = build_vmi(a_vm(), f'{{"domain":{{"firmware":{{"uuid":{given}}}}}}}'.encode())
    uuid = vmi["spec"]["domain"]["firmware"]["uuid"]
    assert (uuid == msgspec.json.decode(given)) is is_kept
    assert uuid


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        ({"running": False}, {"running": True}),
        ({"runStrategy": "Halted"}, {"runStrategy": "Always"}),
        ({"runStrategy": "Halted", "running": False}, {"runStrategy": "Always"}),
    ],
    ids=["by running", "by its run strategy", "by both, of which the strategy counts"],
)
def test_a_halted_machine_is_started_in_the_field_that_it_uses(spec: Any, patch: Any) -> None:
    vm = decode_vm({"metadata": {"name": "web"}, "spec": {**spec, "template": {"spec": {"domain": {}}}}})
    assert vm.run_strategy == "Halted"
    assert run_always_patch(vm) == patch


def test_unknown_fields_are_kept() -> None:
    """A newer virt-api admitted them: an older controller must not change the machine by dropping them."""
    stored: dict[str, Any] = {
        "domain": {"memory": {"guest": "64Mi"}, "devices": {"holograms": [{"name": "h", "depth": 3}]}},
        "warpFactor": {"nested": {"deep": True}},
        "volumes": [{"name": "root", "crystal": {"colour": "red"}}],
    }
    spec = build_vmi(a_vm(), msgspec.json.encode(stored))["spec"]
    spec["domain"].pop("firmware")
    assert spec == stored


def test_nulls_of_the_template_are_absent_in_the_instance() -> None:
    spec = build_vmi(a_vm(), b'{"domain":{"cpu":null,"firmware":null},"affinity":null}')["spec"]
    assert set(spec) == {"domain"}
    assert set(spec["domain"]) == {"firmware"}
