# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachinePool: the rules of VirtualMachine for its template, and its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from kubevirt_api.names import RESERVED_ANNOTATIONS

from controlplane.api.admission.defaults import attach_devices
from controlplane.api.admission.kinds import vm
from controlplane.api.admission.normalize import keep_stored
from controlplane.api.admission.problem import Problem, below
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.affinity import check_requirement
from controlplane.api.admission.validate.data_volumes import check_data_volume_templates
from controlplane.api.admission.validate.machine import check_machine
from controlplane.api.admission.validate.machine_warnings import warn_of_machine
from controlplane.api.admission.validate.metadata import (
    check_annotation_syntax,
    check_labels,
    check_reserved,
    check_template_metadata,
    warn_of_held_back,
)
from controlplane.api.admission.validate.selector import check_parts, check_selector
from controlplane.api.admission.validate.shared_claims import warn_of_shared_claims
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.pool import PoolSelectionPolicy, VirtualMachinePool, VirtualMachinePoolSpec
from controlplane.api.objects.vm import DataVolumeTemplate
from controlplane.api.schema.openapi import Schema

TEMPLATE = "spec.virtualMachineTemplate"
LONGEST_NAME = 245
"""Characters of a pool's name. The names of its VMs, and of their DataVolumes, append a number."""
LONGEST_SUBDOMAIN = 253
STRATEGIES = ("unmanaged", "opportunistic", "proactive")
SELECTOR_IS_FIXED = "is immutable after creation; make another pool, and delete this one with its machines or without"


def _check(spec: VirtualMachinePoolSpec, configuration: KubeVirtConfiguration) -> Iterator[Problem]:
    metadata, machine = spec.virtual_machine_template.metadata, spec.virtual_machine_template.spec
    path, inside = f"{TEMPLATE}.metadata", f"{TEMPLATE}.spec.template"
    yield from check_selector(spec.selector, metadata.labels, "spec.selector", f"{path}.labels")
    yield from check_labels(metadata.labels, f"{path}.labels")
    yield from check_annotation_syntax(metadata.annotations, f"{path}.annotations")
    annotations = machine.template.metadata.annotations
    yield from check_template_metadata(machine.template.metadata, f"{inside}.metadata")
    yield from check_reserved(annotations, {}, f"{inside}.metadata.annotations", reserved=RESERVED_ANNOTATIONS)
    # The only check of these machines: admission skips virt-controller, which creates them.
    yield from check_machine(machine.template.spec, configuration, f"{inside}.spec")
    volumes, templates = machine.template.spec.volumes, f"{TEMPLATE}.spec.dataVolumeTemplates"
    yield from check_data_volume_templates(machine.data_volume_templates, volumes, templates)
    yield from _check_numbered(machine.data_volume_templates, templates)
    yield from _check_strategies(spec)


def _check_numbered(templates: Iterable[DataVolumeTemplate], path: str) -> Iterator[Problem]:
    """Check that there is room for a number behind the names of DataVolumes."""
    for index, template in enumerate(templates):
        name = template.metadata.name
        if LONGEST_NAME < len(name) <= LONGEST_SUBDOMAIN:
            text = (
                f"has {len(name)} characters, at most {LONGEST_NAME} are allowed: each machine's ends with its number"
            )
            yield Problem(below(below(path, index), "metadata.name"), text)


def _check_strategies(spec: VirtualMachinePoolSpec) -> Iterator[Problem]:
    scale_in, update = spec.scale_in_strategy, spec.update_strategy
    for name, strategy in (("scaleInStrategy", scale_in), ("updateStrategy", update)):
        chosen = [choice for choice in STRATEGIES if strategy is not None and getattr(strategy, choice) is not None]
        if len(chosen) > 1:
            yield Problem(f"spec.{name}", f"has {' and '.join(chosen)}, which exclude each other; keep one")
    if scale_in is not None and scale_in.proactive is not None:
        yield from _check_policy(scale_in.proactive.selection_policy, "spec.scaleInStrategy.proactive.selectionPolicy")
    if update is not None and update.proactive is not None:
        yield from _check_policy(update.proactive.selection_policy, "spec.updateStrategy.proactive.selectionPolicy")


def _check_policy(policy: PoolSelectionPolicy | None, path: str) -> Iterator[Problem]:
    if policy is None or policy.selectors is None:
        return
    here = below(path, "selectors")
    if policy.selectors.label_selector is not None:
        yield from check_parts(policy.selectors.label_selector, below(here, "labelSelector"))
    for index, requirement in enumerate(policy.selectors.node_selector_requirement_matcher):
        yield from check_requirement(requirement, below(below(here, "nodeSelectorRequirementMatcher"), index))


def _check_name(meta: ObjectMeta, before: ObjectMeta) -> Iterator[Problem]:
    if meta.name != before.name and len(meta.name) > LONGEST_NAME:
        text = f"has {len(meta.name)} characters, at most {LONGEST_NAME} are allowed: machines are named after it"
        yield Problem("metadata.name", text)


def _find_data_volumes(pool: Json) -> Iterator[str]:
    """Yield the template's fields that need DataVolumes."""
    for path in vm.RULES.data_volumes(_machine(pool)):
        yield f"{TEMPLATE}.{path}"


def _check_whole(pool: Json) -> Iterator[Problem]:
    """Check the template like a VirtualMachine in the pool's namespace."""
    meta, machine = pool.get("metadata"), _machine(pool)
    for problem in vm.RULES.whole({**machine, "metadata": meta if isinstance(meta, dict) else {}}):
        yield Problem(f"{TEMPLATE}.{problem.path}", problem.message, problem.reason)


def _check_run_strategy(spec: Any) -> Iterator[Problem]:
    machine = _machine({"spec": spec})
    for problem in vm.RULES.plain_spec(machine.get("spec")):
        yield Problem(f"{TEMPLATE}.{problem.path}", problem.message, problem.reason)


def _warn(pool: Json) -> Iterator[str]:
    machine = _machine(pool).get("spec")
    template = machine.get("template") if isinstance(machine, dict) else None
    if not isinstance(machine, dict) or not isinstance(template, dict):
        return
    yield from warn_of_held_back(template.get("metadata"), f"{TEMPLATE}.spec.template.metadata")
    yield from warn_of_machine(template.get("spec"), f"{TEMPLATE}.spec.template.spec")
    replicas = pool["spec"].get("replicas")
    if isinstance(replicas, int) and replicas > 1 and not machine.get("dataVolumeTemplates"):
        yield from warn_of_shared_claims(template.get("spec"), f"{TEMPLATE}.spec.template.spec")


def _machine(pool: Json) -> Json:
    """Return the template of the VirtualMachines, not validated; {} when it is no object."""
    spec = pool.get("spec")
    template = spec.get("virtualMachineTemplate") if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else {}


def _leave(pool: Json, configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    """Set no default. With it the mutating webhook checks pools: its errors name a remedy, the schema's do not."""
    del configuration, seed
    return pool


def _keep(pool: Json, old: Json) -> Json:
    return keep_stored(pool, old, VirtualMachinePool, "virtualMachineTemplate")


def _add_schema_rules(spec: Schema) -> None:
    vm.RULES.add_schema_rules(spec["properties"]["virtualMachineTemplate"]["properties"]["spec"])
    # In the schema, not in a webhook: the scale subresource needs a number in every stored pool.
    spec["properties"]["replicas"]["default"] = 1


RULES = Rules(
    spec=_check,
    fill=partial(attach_devices, machine=("virtualMachineTemplate", "spec", "template", "spec")),
    plain_spec=_check_run_strategy,
    whole=_check_whole,
    data_volumes=_find_data_volumes,
    metadata=_check_name,
    fixed={"selector": SELECTOR_IS_FIXED},
    warn=_warn,
    default=_leave,
    keep=_keep,
    add_schema_rules=_add_schema_rules,
)
