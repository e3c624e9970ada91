# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of VirtualMachineInstance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kubevirt_api import names

from controlplane.api.admission.defaults import attach_devices, default_instance
from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate import metadata
from controlplane.api.admission.validate.data_volumes import INSTANCE, find_data_volumes
from controlplane.api.admission.validate.machine import check_machine
from controlplane.api.admission.validate.machine_warnings import warn_of_machine
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.schema.cel import add_machine_rules


def _check_spec(spec: VirtualMachineInstanceSpec, configuration: KubeVirtConfiguration) -> Iterator[Problem]:
    yield from check_machine(spec, configuration, "spec")


def _check_metadata(meta: ObjectMeta, before: ObjectMeta) -> Iterator[Problem]:
    """Check labels, annotations and owner references. Values from before the write are not checked again."""
    yield from metadata.check_labels(meta.labels, "metadata.labels")
    yield from metadata.check_reserved(meta.labels, before.labels, "metadata.labels")
    yield from metadata.check_reserved(
        meta.annotations, before.annotations, "metadata.annotations", reserved=names.RESERVED_ANNOTATIONS
    )
    yield from metadata.check_annotations(
        {name: value for name, value in meta.annotations.items() if before.annotations.get(name) != value},
        "metadata.annotations",
    )
    if meta.annotations != before.annotations:
        yield from metadata.check_passed_on(meta.annotations, "metadata.annotations")
    if meta.owner_references != before.owner_references:
        previous = {owner.uid for owner in before.owner_references}
        yield from metadata.check_owners(tuple(owner for owner in meta.owner_references if owner.uid not in previous))


def _warn(vmi: Json) -> Iterator[str]:
    yield from metadata.warn_of_held_back(vmi.get("metadata"), "metadata")
    yield from warn_of_machine(vmi["spec"], "spec")


def _default(vmi: Json, configuration: KubeVirtConfiguration, seed: str | None) -> Json:
    return vmi if seed is None else default_instance(vmi, configuration, seed)


RULES = Rules(
    spec=_check_spec,
    fill=attach_devices,
    data_volumes=partial(find_data_volumes, machine=INSTANCE),
    metadata=_check_metadata,
    unchangeable=(
        "does not change after creation; change the VirtualMachine, or delete this instance and create another"
    ),
    warn=_warn,
    default=_default,
    finalizer=names.VMI_FINALIZER,
    add_schema_rules=add_machine_rules,
)
