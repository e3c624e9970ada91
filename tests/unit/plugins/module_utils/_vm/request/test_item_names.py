# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of list items that a task may have misspelt, and the warnings about them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.field_path import nested
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import item_names, shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.vm_request import build_request

NAMED = {"name": "web", "namespace": "default"}
GONE = [{"name": "rawx", "disk": None}]
GPUS = ("domain", "devices", "gpus")
REMEDY = "look at its name, or leave the entry out"
TEMPLATES = ("spec", "dataVolumeTemplates")


@pytest.mark.parametrize("kind", [kinds.VM, kinds.VMI, kinds.REPLICA_SET, kinds.POOL], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("options", "field", "path"),
    [
        pytest.param({"disks": GONE}, "disks", shape.DISKS, id="disks"),
        pytest.param({"volumes": GONE}, "volumes", shape.VOLUMES, id="volumes"),
        pytest.param({"interfaces": GONE}, "interfaces", (*shape.DEVICES, "interfaces"), id="interfaces"),
        pytest.param({"networks": GONE}, "networks", (*shape.MACHINE, "networks"), id="networks"),
        pytest.param(
            {"spec": nested(GPUS, GONE)}, "spec: domain.devices.gpus", (*shape.MACHINE, *GPUS), id="any list of spec"
        ),
    ],
)
def test_a_removed_item_is_found_in_the_option_that_removes_it(
    kind: kinds.Kind, options: dict[str, Any], field: str, path: Any
) -> None:
    request = build_request({**NAMED, **options}, "", kind)
    assert request.removals == (item_names.Removal(field, kind.inside(path), "rawx"),)


def test_items_of_a_definition_and_templates_of_data_volumes_are_removed_too() -> None:
    request = build_request({**NAMED, "definition": nested(shape.DISKS, GONE)}, "", kinds.VM)
    assert [removal.field for removal in request.removals] == [
        "definition: spec.template.spec.domain.devices.disks",
    ]
    templates = [{"metadata": {"name": "root"}, "spec": None}]
    request = build_request({**NAMED, "data_volume_templates": templates}, "", kinds.VM)
    assert request.removals == (item_names.Removal("data_volume_templates", TEMPLATES, "root"),)


@pytest.mark.parametrize(
    "disks",
    [
        pytest.param([], id="none"),
        pytest.param([{"name": "a"}], id="no field"),
        pytest.param([{"name": "a", "disk": {}, "cache": None}], id="a field of an item"),
    ],
)
def test_other_items_are_no_removals(disks: list[Any]) -> None:
    assert build_request({**NAMED, "memory": "1Gi", "disks": disks}, "", kinds.VM).removals == ()


def test_an_item_that_another_option_of_the_task_declares_is_not_misspelt() -> None:
    definition = nested(shape.DISKS, [{"name": "rawx", "disk": {}, "serial": "s"}])
    request = build_request({**NAMED, "definition": definition, "disks": GONE}, "", kinds.VM)
    assert request.removals == ()
    assert request.declaration.obj["spec"]["template"]["spec"]["domain"]["devices"]["disks"] == GONE


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        pytest.param(["raw", "rawx"], [], id="it is there"),
        pytest.param(
            ["raw", "seed"],
            ["VM default/web: disks: there is no rawx to remove (there are: raw, seed); " + REMEDY],
            id="it is not there",
        ),
        pytest.param(
            [],
            ["VM default/web: disks: there is no rawx to remove (the list is empty); " + REMEDY],
            id="nothing is there",
        ),
    ],
)  # fmt: skip
def test_a_missing_item_is_named_with_the_known_names(names: list[str], texts: list[str]) -> None:
    before = nested(shape.DISKS, [{"name": name} for name in names])
    removed = (item_names.Removal("disks", shape.DISKS, "rawx"),)
    assert item_names.not_removed("VM default/web", removed, before) == texts


def test_a_new_object_has_no_items_to_remove() -> None:
    removed = (item_names.Removal("disks", shape.DISKS, "rawx"),)
    assert len(item_names.not_removed("VM default/web", removed, None)) == 1


def test_a_volume_without_a_disk_is_named_with_the_disks() -> None:
    after = nested(shape.DISKS, [{"name": "root"}, {"name": "seed"}])
    (text,) = item_names.not_used("VM default/web", ["rootx"], after, kinds.VM)
    assert text.startswith(
        "VM default/web: volumes: nothing uses rootx, because there is no disk of that name (there are:"
    )
