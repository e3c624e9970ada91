# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachineInstanceReplicaSet."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kubevirt_api.names import RESERVED_ANNOTATIONS

from controlplane.api.admission.defaults import attach_devices
from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.data_volumes import TEMPLATE as TEMPLATE_SPEC
from controlplane.api.admission.validate.data_volumes import find_data_volumes
from controlplane.api.admission.validate.machine import check_machine
from controlplane.api.admission.validate.machine_warnings import warn_of_machine
from controlplane.api.admission.validate.metadata import check_reserved, check_template_metadata, warn_of_held_back
from controlplane.api.admission.validate.selector import check_selector
from controlplane.api.admission.validate.shared_claims import warn_of_shared_claims
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSetSpec
from controlplane.api.schema.bounds import SUBDOMAIN
from controlplane.api.schema.cel import add_machine_rules
from controlplane.api.schema.openapi import Schema
from controlplane.api.schema.patterns import matches

TEMPLATE = "spec.template"


def _check(spec: VirtualMachineInstanceReplicaSetSpec, configuration: KubeVirtConfiguration) -> Iterator[Problem]:
    metadata, path = spec.template.metadata, f"{TEMPLATE}.metadata"
    yield from check_selector(spec.selector, metadata.labels, "spec.selector", f"{path}.labels")
    yield from check_template_metadata(metadata, path)
    yield from _check_prefix(metadata, path)
    yield from check_reserved(metadata.annotations, {}, f"{path}.annotations", reserved=RESERVED_ANNOTATIONS)
    yield from check_machine(spec.template.spec, configuration, f"{TEMPLATE}.spec")


def _check_prefix(metadata: ObjectMeta, path: str) -> Iterator[Problem]:
    """Check the name that the names of instances begin with."""
    for field, prefix in (("name", metadata.name), ("generateName", metadata.generate_name)):
        if prefix and not matches(SUBDOMAIN, f"{prefix}0"):
            text = f"{excerpt(prefix)} begins the names of instances; use lower-case letters, digits, '-' and '.', or"
            yield Problem(below(path, field), f"{text} remove it: they are named after the set then")


def _warn(replica_set: Json) -> Iterator[str]:
    spec = replica_set["spec"]
    template, replicas = spec.get("template"), spec.get("replicas")
    if not isinstance(template, dict):
        return
    yield from warn_of_held_back(template.get("metadata"), f"{TEMPLATE}.metadata")
    yield from warn_of_machine(template.get("spec"), f"{TEMPLATE}.spec")
    if isinstance(replicas, int) and replicas > 1:
        yield from warn_of_shared_claims(template.get("spec"), f"{TEMPLATE}.spec")


def _leave(replica_set: Json, configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    """Set no default. With it the mutating webhook checks sets: its errors name a remedy, the schema's do not."""
    del configuration, seed
    return replica_set


def _add_schema_rules(spec: Schema) -> None:
    add_machine_rules(spec["properties"]["template"]["properties"]["spec"])
    # In the schema, not in a webhook: the scale subresource needs a number in every stored set.
    spec["properties"]["replicas"]["default"] = 1


RULES = Rules(
    spec=_check,
    fill=partial(attach_devices, machine=("template", "spec")),
    data_volumes=partial(find_data_volumes, machine=TEMPLATE_SPEC),
    warn=_warn,
    default=_leave,
    add_schema_rules=_add_schema_rules,
)
