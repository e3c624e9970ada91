# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kubevirt_api import names

from controlplane.api.admission.defaults import attach_devices, default_vm
from controlplane.api.admission.identity import keep_identity
from controlplane.api.admission.known_fields import INFERABLE
from controlplane.api.admission.normalize import keep_stored
from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.data_volumes import TEMPLATE as TEMPLATE_SPEC
from controlplane.api.admission.validate.data_volumes import (
    check_data_volume_templates,
    check_namespaces,
    find_data_volumes,
)
from controlplane.api.admission.validate.machine import check_machine
from controlplane.api.admission.validate.machine_warnings import warn_of_machine
from controlplane.api.admission.validate.metadata import check_template_metadata, warn_of_held_back
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineSpec
from controlplane.api.schema.cel import add_machine_rules, rule
from controlplane.api.schema.openapi import Schema


def _check_spec(spec: VirtualMachineSpec, configuration: KubeVirtConfiguration) -> Iterator[Problem]:
    yield from check_template_metadata(spec.template.metadata, "spec.template.metadata")
    yield from check_machine(spec.template.spec, configuration, "spec.template.spec")
    yield from check_data_volume_templates(spec.data_volume_templates, spec.template.spec.volumes)


def _check_strategy(spec: Any) -> Iterator[Problem]:
    if not isinstance(spec, dict):
        return
    chosen = [name for name in ("running", "runStrategy") if spec.get(name) not in (None, "")]
    if len(chosen) == 2:
        yield Problem("spec.running", "running and runStrategy exclude each other; remove running")
    elif not chosen:
        text = "runStrategy (or the deprecated running) is required; set Always, Halted, Manual, RerunOnFailure or Once"
        yield Problem("spec.runStrategy", text, "FieldValueRequired")


def _warn(vm: Json) -> Iterator[str]:
    if vm["spec"].get("running") is not None:
        yield "spec.running is deprecated, please use spec.runStrategy instead."
    for name in sorted(INFERABLE[VirtualMachineSpec.__name__]):
        if isinstance(vm["spec"].get(name), dict):
            yield f"spec.{name}: is left out; this version has nothing to infer it from"
    template = vm["spec"].get("template")
    if isinstance(template, dict):
        yield from warn_of_held_back(template.get("metadata"), "spec.template.metadata")
        yield from warn_of_machine(template.get("spec"), "spec.template.spec")


def _add_schema_rules(spec: Schema) -> None:
    add_machine_rules(spec["properties"]["template"]["properties"]["spec"])
    rule(
        spec,
        "has(self.running) != has(self.runStrategy)",
        "needs exactly one of runStrategy and the deprecated running; set runStrategy, e.g. Halted or Always",
    )


def _keep(vm: Json, old: Json) -> Json:
    return keep_stored(keep_identity(vm, old), old, VirtualMachine, "template", "spec")


RULES = Rules(
    spec=_check_spec,
    fill=partial(attach_devices, machine=("template", "spec")),
    whole=check_namespaces,
    data_volumes=partial(find_data_volumes, machine=TEMPLATE_SPEC),
    plain_spec=_check_strategy,
    warn=_warn,
    default=default_vm,
    keep=_keep,
    finalizer=names.VM_FINALIZER,
    add_schema_rules=_add_schema_rules,
)
