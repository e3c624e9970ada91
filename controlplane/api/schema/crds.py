# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build our CustomResourceDefinitions as plain values: names, versions and columns around the generated schemas.

The first version is stored; the others are served with the same schema. A kind's own settings are in its row of
controlplane.api.registry. No CEL rule may compare with the old object: CEL does not know the user, and the control
plane must be able to change fields that users may not change (hotplug, hand-over).
"""

from __future__ import annotations

from typing import Any

from controlplane.api.registry import Kind
from controlplane.api.schema.openapi import Schema, object_schema


def crd(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind."""
    schema, resource = _root(kind), kind.resource
    stored, *served = kind.versions
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}", "labels": {kind.label: ""}},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(kind.short_names),
                "categories": ["all"],
            },
            "conversion": {"strategy": "None"},
            "versions": [
                _version(kind, stored, schema),
                *({**_version(kind, version, schema), "storage": False, "deprecated": True} for version in served),
            ],
        },
    }


def _version(kind: Kind, version: str, schema: Schema) -> dict[str, Any]:
    columns = [
        {
            "name": column.name,
            "type": column.type,
            "jsonPath": column.path,
            **({"priority": column.priority} if column.priority else {}),
        }
        for column in kind.columns
    ]
    selectable = [{"jsonPath": path} for path in kind.selectable]
    return {
        "name": version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        **({"selectableFields": selectable} if selectable else {}),
        "subresources": {"status": {}, **_scale(kind)},
        "schema": {"openAPIV3Schema": schema},
    }


def _scale(kind: Kind) -> dict[str, Any]:
    if kind.scale is None:
        return {}
    paths = kind.scale
    return {
        "scale": {
            "specReplicasPath": paths.spec_replicas,
            "statusReplicasPath": paths.status_replicas,
            "labelSelectorPath": paths.label_selector,
        }
    }


def _root(kind: Kind) -> Schema:
    spec = object_schema(kind.spec, keep_unknown=True)
    kind.rules.add_schema_rules(spec)
    return {
        "type": "object",
        "description": kind.description,
        **({"required": ["spec"]} if kind.needs_spec else {}),
        # Otherwise the API server drops a misspelt "sepc" before admission can report it.
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "apiVersion": {"type": "string", "description": f"Group and version, {kind.resource.api_version}."},
            "kind": {"type": "string", "description": f"{kind.resource.kind}."},
            "metadata": {"type": "object"},
            "spec": {"description": "What is wanted.", **spec},
            "status": {
                "description": "What is. Written by the control plane.",
                **object_schema(kind.status, keep_unknown=False),
            },
        },
    }
