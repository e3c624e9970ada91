# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of a VM's template apply at its next start only: pure.

The template's hash in the VMI shows that a field differs. To find the fields, this module compares the VMI that would
be created now with the running one. It reports only names of fields, because values are the user's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import TEMPLATE_HASH

from controlplane.api.objects.meta import Condition, Quantity
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from controlplane.virt_controller.vm.live_change import has_grown, is_only_live, next_run, refuse_sockets
from controlplane.virt_controller.vm.live_memory import has_other_memory, refuse_memory
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.template_metadata import changed_metadata
from controlplane.virt_controller.vm.world import World

NAMED_FIELDS = 8
"""Fields that the message names. The others are counted."""
SOCKETS, MEMORY = "domain.cpu.sockets", "domain.memory.guest"


def restart_required(world: World) -> Condition | None:
    """Report that the template differs from the running VMI. A VMI that is final or stopping gets no changes.

    A VMI of an older version has no hash: nothing is reported.
    """
    own = world.own
    if own is None or world.is_stopping or is_final(own.status.phase):
        return None
    causes = [cause for cause in (_cause_in_spec(world, own), _cause_in_metadata(world, own)) if cause]
    if not causes:
        return None
    message = f"{', and '.join(causes)}; restart the machine to apply it"
    return Condition(type=condition_types.RESTART_REQUIRED, status="True", message=message)


def _cause_in_spec(world: World, own: VirtualMachineInstance) -> str:
    made_from = own.metadata.annotations.get(TEMPLATE_HASH)
    if made_from is None or made_from == template_hash(world.template):
        return ""
    if not is_only_live(world, own):
        return f"a non-live-updatable field was changed in the template spec{_field_names(world, own)}"
    if why := refuse_sockets(world, own):
        return f"{SOCKETS} was changed in the template spec, and {why}"
    if why := refuse_memory(own, next_run(world)):
        return f"{MEMORY} was changed in the template spec, and {why}"
    return ""  # live_change writes it into the VMI


def _cause_in_metadata(world: World, own: VirtualMachineInstance) -> str:
    parts = changed_metadata(world.vm.spec.template.metadata, own.metadata)
    return f"{' and '.join(parts)} were changed in the template metadata" if parts else ""


def _field_names(world: World, own: VirtualMachineInstance) -> str:
    next_spec = next_run(world)
    differing = set(_differing(_without_run_requests(own.spec, world.vm.spec.template.spec), next_spec))
    fields = sorted(differing.difference(_consequences(own, differing, next_spec.domain)))
    if not fields:
        return ""  # a field that only a newer version knows
    more = f" and {len(fields) - NAMED_FIELDS} more" if len(fields) > NAMED_FIELDS else ""
    return f": {', '.join(fields[:NAMED_FIELDS])}{',' if more else ''}{more}"


def _without_run_requests(
    running: VirtualMachineInstanceSpec, template: VirtualMachineInstanceSpec
) -> VirtualMachineInstanceSpec:
    """Ignore requests for this run alone: a paused start, and a shorter grace period."""
    is_shorter = running.grace_period_seconds < template.grace_period_seconds
    return msgspec.structs.replace(
        running,
        start_strategy=template.start_strategy,
        **({"termination_grace_period_seconds": template.termination_grace_period_seconds} if is_shorter else {}),
    )


def _consequences(own: VirtualMachineInstance, fields: Collection[str], next_domain: DomainSpec) -> Iterator[str]:
    """Yield fields that differ only because of sockets or memory, or because of a live change."""
    is_grown, is_resized = has_grown(own), has_other_memory(own)
    if is_grown or SOCKETS in fields or own.spec.domain.cpu is None or not own.spec.domain.cpu.max_sockets:
        yield "domain.cpu.maxSockets"
    if is_resized or MEMORY in fields or own.spec.domain.memory is None or own.spec.domain.memory.max_guest is None:
        yield "domain.memory.maxGuest"
    current_resources, next_resources = own.spec.domain.resources, next_domain.resources
    for field, current, next_ in (
        ("requests", current_resources.requests, next_resources.requests),
        ("limits", current_resources.limits, next_resources.limits),
    ):
        ignored: dict[str, Quantity] = {**({"cpu": 0} if is_grown else {}), **({"memory": 0} if is_resized else {})}
        if ignored and {**current, **ignored} == {**next_, **ignored}:
            yield f"domain.resources.{field}"


def _differing(first: msgspec.Struct, second: msgspec.Struct, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that differ; lists and maps as a whole, because their entries have the user's names."""
    for field in msgspec.structs.fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if a == b:
            continue
        if isinstance(a, msgspec.Struct) and isinstance(b, msgspec.Struct):
            yield from _differing(a, b, f"{path}{field.encode_name}.")
        else:
            yield path + field.encode_name
