# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our CustomResourceDefinitions as plain values: names, versions, columns and rules around the generated schemas.

v1 is stored, v1alpha3 is served beside it with the same schema. Rules here are those that the API server can check
by itself (CEL); admission checks the same and more, in better words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubevirt_api import names
from msgspec import Struct

from controlplane.api.objects.kubevirt import KubeVirtSpec, KubeVirtStatus
from controlplane.api.objects.vm import VirtualMachineSpec, VirtualMachineStatus
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.status import VirtualMachineInstanceStatus
from controlplane.api.schema.openapi import Schema, object_schema

_AGE = ("Age", "date", ".metadata.creationTimestamp", 0)


def _condition(kind: str) -> str:
    return f".status.conditions[?(@.type=='{kind}')].status"


@dataclass(frozen=True, slots=True)
class Definition:
    """What is particular about one kind."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    description: str
    spec: type[Struct]
    status: type[Struct]
    columns: tuple[tuple[str, str, str, int], ...]
    label: str = names.ROLE
    spec_required: bool = True
    selectable: tuple[str, ...] = ()


DEFINITIONS = (
    Definition(
        kind="VirtualMachine",
        plural="virtualmachines",
        short_names=("vm", "vms"),
        description="A virtual machine: it may run or be halted, and outlives each run.",
        spec=VirtualMachineSpec,
        status=VirtualMachineStatus,
        columns=(
            _AGE,
            ("Status", "string", ".status.printableStatus", 0),
            ("Ready", "string", _condition("Ready"), 0),
        ),
    ),
    Definition(
        kind="VirtualMachineInstance",
        plural="virtualmachineinstances",
        short_names=("vmi", "vmis"),
        description="One run of a virtual machine: from its launcher Pod's creation until it succeeded or failed.",
        spec=VirtualMachineInstanceSpec,
        status=VirtualMachineInstanceStatus,
        columns=(
            _AGE,
            ("Phase", "string", ".status.phase", 0),
            ("IP", "string", ".status.interfaces[0].ipAddress", 0),
            ("NodeName", "string", ".status.nodeName", 0),
            ("Ready", "string", _condition("Ready"), 0),
            ("Live-Migratable", "string", _condition("LiveMigratable"), 1),
            ("Paused", "string", _condition("Paused"), 1),
        ),
        selectable=(".status.phase", ".status.nodeName"),
    ),
    Definition(
        kind="KubeVirt",
        plural="kubevirts",
        short_names=("kv", "kvs"),
        description="The configuration of the control plane, and its state.",
        spec=KubeVirtSpec,
        status=KubeVirtStatus,
        columns=(_AGE, ("Phase", "string", ".status.phase", 0)),
        label="operator.kubevirt.io",
        spec_required=False,
    ),
)


def crd(definition: Definition) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind."""
    schema = _root(definition)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{names.GROUP}", "labels": {definition.label: ""}},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                "shortNames": list(definition.short_names),
                "categories": ["all"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                _version(definition, names.VERSION, schema),
                {**_version(definition, names.OLD_VERSION, schema), "storage": False, "deprecated": True},
            ],
        },
    }


def _version(definition: Definition, version: str, schema: Schema) -> dict[str, Any]:
    columns = [
        {"name": name, "type": kind, "jsonPath": path, **({"priority": priority} if priority else {})}
        for name, kind, path, priority in definition.columns
    ]
    selectable = [{"jsonPath": path} for path in definition.selectable]
    return {
        "name": version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        **({"selectableFields": selectable} if selectable else {}),
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }


def _root(definition: Definition) -> Schema:
    spec = object_schema(definition.spec, keep_unknown=True)
    _RULES[definition.kind](spec)
    return {
        "type": "object",
        "description": definition.description,
        **({"required": ["spec"]} if definition.spec_required else {}),
        # So that admission can name a misspelt "sepc"; see controlplane.api.admission.fields.
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version, kubevirt.io/v1."},
            "kind": {"type": "string", "description": f"{definition.kind}."},
            "metadata": {"type": "object"},
            "spec": {"description": "What is wanted.", **spec},
            "status": {
                "description": "What is. Written by the control plane.",
                **object_schema(definition.status, keep_unknown=False),
            },
        },
    }


def _rule(schema: Schema, rule: str, message: str) -> None:
    schema.setdefault("x-kubernetes-validations", []).append({"rule": rule, "message": message})


def _exactly_one(schema: Schema, what: str) -> None:
    """Demand one of the optional objects of a union, e.g. a volume's sources."""
    sources = sorted(name for name, one in schema["properties"].items() if one["type"] == "object")
    present = ", ".join(f"has(self.{name})" for name in sources)
    _rule(schema, f"[{present}].filter(one, one).size() == 1", f"needs exactly one {what}: {', '.join(sources)}")


def _at_most_one(schema: Schema, *members: str) -> None:
    _rule(schema, f"!(has(self.{members[0]}) && has(self.{members[1]}))", " and ".join(members) + " exclude each other")


def _instance_rules(spec: Schema) -> None:
    properties = spec["properties"]
    domain = properties["domain"]["properties"]
    _exactly_one(properties["volumes"]["items"], "source")
    _exactly_one(properties["networks"]["items"], "source")
    _at_most_one(domain["devices"]["properties"]["disks"]["items"], "disk", "cdrom")
    _at_most_one(domain["firmware"]["properties"]["bootloader"], "bios", "efi")
    _at_most_one(domain["clock"], "utc", "timezone")


def _vmi_rules(spec: Schema) -> None:
    _instance_rules(spec)
    # Not the whole spec: stop and restart shorten terminationGracePeriodSeconds of what runs.
    for part in ("domain", "volumes", "networks"):
        _rule(
            spec["properties"][part],
            "self == oldSelf",
            f"the {part} of a VirtualMachineInstance cannot change; change the VirtualMachine",
        )


def _vm_rules(spec: Schema) -> None:
    _instance_rules(spec["properties"]["template"]["properties"]["spec"])
    _rule(
        spec,
        "has(self.running) != has(self.runStrategy)",
        "needs exactly one of runStrategy and the deprecated running; set runStrategy, e.g. Halted or Always",
    )


def _no_rules(spec: Schema) -> None:
    """Leave a schema as it is."""


_RULES = {"VirtualMachine": _vm_rules, "VirtualMachineInstance": _vmi_rules, "KubeVirt": _no_rules}
