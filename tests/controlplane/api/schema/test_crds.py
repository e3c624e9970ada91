# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.registry import KINDS, Kind
from controlplane.api.schema.crds import crd
from controlplane.api.schema.generate_crds import FOLDER, LIST, files
from controlplane.api.schema.openapi import Schema

FILES = files()
BY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, item in schema.get("properties", {}).items():
        yield from nodes(item, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            yield from nodes(schema[inside], f"{path}[]")


def schema_of(kind: Kind) -> Schema:
    schema: Schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize(
    ("path", "text"), FILES.items(), ids=lambda value: value.name if isinstance(value, Path) else ""
)
def test_the_crds_of_the_role_are_generated_from_the_types(path: Path, text: str) -> None:
    assert path.read_text() == text, "run: python -m controlplane.api.schema.generate_crds"


def test_the_crd_folder_of_the_role_has_no_other_files() -> None:
    assert {*FOLDER.iterdir(), LIST} == set(FILES)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if len(kind.versions) > 1], ids=lambda kind: kind.resource.kind
)
def test_both_versions_share_one_schema_and_the_newer_is_stored(kind: Kind) -> None:
    new, old = crd(kind)["spec"]["versions"]

    assert (new["name"], new["storage"], old["name"], old["storage"], old["deprecated"]) == (
        kind.versions[0],
        True,
        kind.versions[1],
        False,
        True,
    )
    assert new["schema"] == old["schema"]
    assert new["subresources"] == old["subresources"]
    assert new["subresources"]["status"] == {}


@BY_KIND
def test_every_field_has_a_description(kind: Kind) -> None:
    silent = [
        path
        for path, node in nodes(schema_of(kind))
        if path and not path.endswith(("[]", ".metadata")) and not node.get("description")
    ]

    assert silent == []


@BY_KIND
def test_specs_keep_unknown_fields_for_admission_and_statuses_drop_them(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind)):
        if "properties" in node:
            keeps = node.get("x-kubernetes-preserve-unknown-fields", False)
            assert keeps == (not path.startswith(".status")), path


@BY_KIND
def test_every_list_map_and_string_is_bounded(kind: Kind) -> None:
    unbounded = [
        path
        for path, node in nodes(schema_of(kind)["properties"]["spec"])
        if (node.get("type") == "string" and not {"maxLength", "enum"} & set(node))
        or (node.get("type") == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
    ]

    assert unbounded == []


def test_printer_columns_are_upstreams() -> None:
    columns: dict[str, list[Any]] = {
        kind.resource.kind: [
            (column["name"], column.get("priority", 0))
            for column in crd(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
        ]
        for kind in KINDS
    }

    assert columns == {
        "VirtualMachine": [("Age", 0), ("Status", 0), ("Ready", 0)],
        "VirtualMachineInstance": [
            ("Age", 0),
            ("Phase", 0),
            ("IP", 0),
            ("NodeName", 0),
            ("Ready", 0),
            ("Live-Migratable", 1),
            ("Paused", 1),
        ],
        "VirtualMachineInstanceReplicaSet": [("Desired", 0), ("Current", 0), ("Ready", 0), ("Age", 0)],
        "VirtualMachineInstanceMigration": [("Phase", 0), ("VMI", 0), ("Age", 0)],
        "VirtualMachinePool": [("Desired", 0), ("Current", 0), ("Ready", 0), ("Age", 0)],
        "MigrationPolicy": [("Age", 0)],
        "KubeVirt": [("Age", 0), ("Phase", 0)],
    }


@pytest.mark.parametrize("version", [0, 1], ids=["v1", "v1alpha3"])
def test_instances_are_selectable_by_phase_and_node_in_both_versions(version: int) -> None:
    """virt-handler selects the instances of its node by this field: it writes the label itself."""
    selectable = {
        kind.resource.kind: [field["jsonPath"] for field in versions[version]["selectableFields"]]
        for kind in KINDS
        if len(versions := crd(kind)["spec"]["versions"]) > version and "selectableFields" in versions[version]
    }

    assert selectable == {
        "VirtualMachineInstance": [".status.phase", ".status.nodeName", ".status.migrationState.targetNode"]
    }


def test_scalable_kinds_have_a_scale_subresource() -> None:
    """An autoscaler counts the Pods of the selector; `kubectl scale` writes the replicas."""
    scaled = {
        kind.resource.kind: subresources["scale"]
        for kind in KINDS
        if "scale" in (subresources := crd(kind)["spec"]["versions"][0]["subresources"])
    }

    paths = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    }
    assert scaled == {"VirtualMachineInstanceReplicaSet": paths, "VirtualMachinePool": paths}


def test_replicas_are_bounded_and_have_a_default() -> None:
    """The API server does not scale an object without the field."""
    (sets,) = (kind for kind in KINDS if kind.resource.kind == "VirtualMachineInstanceReplicaSet")
    replicas = schema_of(sets)["properties"]["spec"]["properties"]["replicas"]

    assert (replicas["minimum"], replicas["maximum"], replicas["default"]) == (0, 10_000, 1)


@BY_KIND
def test_no_rule_compares_with_the_old_object(kind: Kind) -> None:
    """The schema does not see who writes: such a rule would bind the accounts of the control plane."""
    rules = [rule["rule"] for _unused, node in nodes(schema_of(kind)) for rule in validations(node)]

    assert not [rule for rule in rules if "oldSelf" in rule]


def validations(node: Schema) -> list[dict[str, str]]:
    rules: list[dict[str, str]] = node.get("x-kubernetes-validations", [])
    return rules


@pytest.mark.parametrize("name", ["attempt", "epoch"])
def test_counters_in_a_status_have_a_maximum(name: str) -> None:
    """A compromised node once wrote an epoch of 2e9, and virt-controller looped over it."""
    (vmi,) = (kind for kind in KINDS if kind.resource.kind == "VirtualMachineInstance")
    counter = schema_of(vmi)["properties"]["status"]["properties"][name]

    assert (counter["type"], counter["minimum"], counter["maximum"]) == ("integer", 0, 10_000)


def largest(node: Schema) -> int:
    """Return the size in bytes of the largest value that a schema accepts; a character of free text counts as four."""
    inside: list[int] = [len(name) + 4 + largest(item) for name, item in node.get("properties", {}).items()]
    match node.get("type"):
        case "object":
            values = node.get("additionalProperties")
            inside += [node["maxProperties"] * (300 + largest(values))] if values else []
            return 2 + sum(inside)
        case "array":
            return 2 + int(node["maxItems"]) * (1 + largest(node["items"]))
        case "integer" | "boolean":
            return 20
    if "enum" in node:
        return max(map(len, node["enum"])) + 2
    return int(node["maxLength"]) * (1 if "pattern" in node or "format" in node else 4) + 2


def test_the_status_that_a_node_can_write_stays_small() -> None:
    """Anyone with the token of the node can write it; etcd, every cache and every watch carry it."""
    (vmi,) = (kind for kind in KINDS if kind.resource.kind == "VirtualMachineInstance")
    status = schema_of(vmi)["properties"]["status"]["properties"]
    written = ("phase", "reason", "phaseTransitionTimestamps", "interfaces", "machine", "guestOSInfo", "fsFreezeStatus")
    written = (*written, "volumeStatus")

    assert sum(largest(status[name]) for name in (*written, "conditions")) <= 576 * 1024
    assert largest(status["interfaces"]) <= 64 * 1024
