# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The revision of a start, and its name."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import VM_GENERATION

from controlplane.api.objects.meta import ObjectMeta, OwnerReference
from controlplane.api.start_revision import build_revision, revision_of_run
from tests.controlplane.virt_controller.builders import VM_UID, a_vm

NAME = f"revision-start-vm-{VM_UID}-3"


def test_the_revision_has_the_spec_as_stored_and_belongs_to_the_vm() -> None:
    """Upstream's clients read data.spec."""
    stored = {"runStrategy": "Always", "novelty": True}
    assert build_revision(a_vm(), stored) == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": NAME,
            "namespace": "default",
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine",
                    "name": "web",
                    "uid": VM_UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"spec": stored},
        "revision": 3,
    }


OWNER: dict[str, Any] = {"api_version": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": VM_UID}


@pytest.mark.parametrize(
    ("owner", "generation", "name"),
    [
        ({"controller": True}, "3", NAME),
        ({"controller": False}, "3", ""),
        ({"controller": True, "kind": "VirtualMachineInstanceReplicaSet"}, "3", ""),
        ({"controller": True}, None, ""),
        ({"controller": True}, "3/x", ""),
        ({"controller": True}, "²", ""),
    ],
    ids=["a VM's", "a plain owner", "a replica set's", "without a generation", "malformed", "no ASCII digit"],
)
def test_an_instance_names_the_revision_of_the_vm_that_created_it(
    owner: dict[str, Any], generation: str | None, name: str
) -> None:
    annotations = {} if generation is None else {VM_GENERATION: generation}
    meta = ObjectMeta(annotations=annotations, owner_references=(OwnerReference(**{**OWNER, **owner}),))
    assert revision_of_run(meta) == name


def test_an_instance_without_owner_has_no_revision() -> None:
    assert revision_of_run(ObjectMeta(annotations={VM_GENERATION: "3"})) == ""
