# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kind is its types, its rules and one row of the registry. Shown with a kind that exists only in this file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, ClassVar

import yaml

from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Node, Object
from controlplane.api.objects.resources import Resource
from controlplane.api.registry import AGE, KINDS, Column, Kind, by_name
from controlplane.api.schema.bounds import bounded
from controlplane.api.schema.cel import rule
from controlplane.api.schema.generate_crds import FOLDER, LIST, files
from controlplane.api.schema.openapi import Schema
from controlplane.virt_api.http.routes import webhook_paths
from tests.controlplane.api import golden

# 1. The types.


class ToySpec(Node, frozen=True, kw_only=True):
    """What a toy should be."""

    wheels: Annotated[int, bounded(minimum=0, maximum=8)] = 0
    """How many wheels it has."""
    spare_wheels: int = 0
    """How many more lie in the box."""


class ToyStatus(Node, frozen=True, kw_only=True):
    """What a toy is."""

    phase: str = ""
    """New or Broken."""


class Toy(Object, frozen=True, kw_only=True):
    """Something to play with."""

    resource: ClassVar[Resource] = Resource("kubevirt.io", "v1", "toys", "Toy", namespaced=False)

    spec: ToySpec
    """What is wanted."""
    status: ToyStatus = ToyStatus()
    """What is."""


# 2. The rules.

FINALIZER = "kubevirt.io/toy-box"


def check_spec(spec: ToySpec, _configuration: KubeVirtConfiguration) -> Iterator[Problem]:
    if spec.spare_wheels > spec.wheels:
        yield Problem("spec.spareWheels", "there are more of them than wheels; remove some")


def default(toy: Json, _configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    finalizers = {} if seed is None else {"finalizers": [FINALIZER]}
    return {**toy, "metadata": {**toy["metadata"], **finalizers}, "spec": {"wheels": 4, **toy["spec"]}}


def add_schema_rules(spec: Schema) -> None:
    rule(spec, "self.spareWheels <= self.wheels", "more spare wheels than wheels")


RULES = Rules(spec=check_spec, default=default, finalizer=FINALIZER, add_schema_rules=add_schema_rules)

# 3. The row.

TOY = Kind(
    root=Toy,
    rules=RULES,
    short_names=("ty",),
    columns=(AGE, Column("Phase", ".status.phase")),
    selectable=(".status.phase",),
    versions=("v1",),
)

ALL = (*KINDS, TOY)


def test_the_crd_is_generated_from_types_rules_and_row() -> None:
    crd = json.loads(files((TOY,))[FOLDER / "toys.json"])

    assert crd["metadata"]["name"] == "toys.kubevirt.io"
    assert crd["spec"]["scope"] == "Cluster"
    assert crd["spec"]["names"]["shortNames"] == ["ty"]
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["storage"]) == ("v1", True)
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Age", "Phase"]
    assert version["selectableFields"] == [{"jsonPath": ".status.phase"}]
    schema = version["schema"]["openAPIV3Schema"]
    assert (schema["description"], schema["required"]) == ("Something to play with.", ["spec"])
    spec = schema["properties"]["spec"]
    assert spec["properties"]["wheels"] == {
        "description": "How many wheels it has.",
        "type": "integer",
        "minimum": 0,
        "maximum": 8,
    }
    assert spec["x-kubernetes-validations"][0]["rule"] == "self.spareWheels <= self.wheels"


def test_its_webhooks_are_served_and_listed_for_the_role() -> None:
    paths = webhook_paths(ALL)
    (entry,) = yaml.safe_load(files((TOY,))[LIST])

    assert (paths["/toys-mutate"], paths["/toys-validate"]) == ("mutate", "validate")
    assert entry == {
        "plural": "toys",
        "group": "kubevirt.io",
        "version": "v1",
        "scope": "Cluster",
        "is_mutated": True,
        "is_users": True,
        "own_role": "",
        "is_scaled": False,
    }


def test_kind_names_are_unique() -> None:
    names = [name for kind in KINDS for name in (kind.resource.plural, kind.resource.kind.lower(), *kind.short_names)]

    assert len(names) == len(set(names))


def test_every_kind_has_an_example_manifest() -> None:
    """test_verdict checks that admission accepts the examples; this test checks that none is missing."""
    assert {golden.load(name)["kind"] for name in golden.NAMES} == set(by_name(KINDS))
