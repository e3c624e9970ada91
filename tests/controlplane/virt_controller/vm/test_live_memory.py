# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changed memory in a template: which changes are written into the running instance, and which require a restart."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import TEMPLATE_HASH

from controlplane.virt_controller.vm.live_change import find_change
from controlplane.virt_controller.vm.live_memory import merged
from controlplane.virt_controller.vm.restart_required import restart_required
from controlplane.virt_controller.vm.template import template_hash
from tests.controlplane.virt_controller.vm.templates import MOVABLE, MOVING, STAGED, changed, restart_message

Json = dict[str, Any]
TOLD = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}


def memory(guest: str, *, resources: Json | None = None, cpu: Json | None = None, **more: Any) -> Json:
    parts = {"resources": resources, "cpu": cpu}
    return {"domain": {"memory": {"guest": guest, **more}, **{name: part for name, part in parts.items() if part}}}


def a_change(was: Json, now: Json, **facts: Any) -> Any:
    return changed(was, now, **{"memory": TOLD, **facts})


ONE, TWO = memory("1Gi"), memory("2Gi")
REQUEST = {"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}
WRITTEN: dict[str, tuple[Json, Json, Json]] = {
    # template before, template now, patch of the domain
    "more": (ONE, TWO, {"memory": {"guest": "2Gi"}}),
    "as much as it can have": (ONE, memory("4Gi"), {"memory": {"guest": "4Gi"}}),
    "up to its own limit": (memory("1Gi", maxGuest="3Gi"), memory("3Gi", maxGuest="3Gi"), {"memory": {"guest": "3Gi"}}),
    "its request grows with it": (
        memory("1Gi", resources=REQUEST),
        memory("2Gi", resources=REQUEST),
        {"memory": {"guest": "2Gi"}, "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "5Gi"}}},
    ),
    "sockets as well": (
        memory("1Gi", cpu={"sockets": 1}, resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
        memory("2Gi", cpu={"sockets": 2}, resources={"requests": {"cpu": "1", "memory": "1Gi"}}),
        {
            "cpu": {"sockets": 2},
            "memory": {"guest": "2Gi"},
            "resources": {"requests": {"cpu": "1100m", "memory": "2Gi"}},
        },
    ),
}


@pytest.mark.parametrize(("was", "now", "domain"), WRITTEN.values(), ids=WRITTEN)
def test_changed_memory_is_written_into_the_instance(was: Json, now: Json, domain: Json) -> None:
    world = a_change(was, now)
    change = find_change(world)
    assert change is not None
    assert change["spec"] == {"domain": domain}
    assert change["metadata"]["annotations"][TEMPLATE_HASH] == template_hash(world.template)
    assert restart_required(world) is None


def test_memory_may_shrink_to_the_amount_at_boot() -> None:
    grown = {"guestAtBoot": "1Gi", "guestCurrent": "3Gi", "guestRequested": "3Gi"}
    has = {"domain": {**memory("3Gi", maxGuest="4Gi")["domain"], "cpu": {"sockets": 1, "maxSockets": 4}}}
    world = a_change(memory("3Gi"), ONE, spec=has, memory=grown)
    change = find_change(world)
    assert change is not None
    assert change["spec"] == {"domain": {"memory": {"guest": "1Gi"}}}


def test_the_same_amount_in_another_unit_is_no_change() -> None:
    change = find_change(a_change(ONE, memory("1024Mi")))
    assert change is not None
    assert "spec" not in change


FIXED = {**MOVABLE, "status": "False"}
REFUSED: dict[str, tuple[Json, Json, Json, str]] = {
    "more than it can have": (ONE, memory("5Gi"), {}, "it can have 4Gi at most while it runs (maxGuest)"),
    "less than it began with": (
        memory("2Gi"),
        ONE,
        {"memory": {**TOLD, "guestAtBoot": "2Gi", "guestRequested": "2Gi"}},
        "it booted with 2Gi, and no less is possible while it runs",
    ),
    "no whole blocks": (ONE, memory("1537Mi"), {}, "memory.guest must be a multiple of 2Mi"),
    "a small guest": (memory("512Mi"), ONE, {}, "it was started without room for more"),
    "no whole blocks at the start": (memory("1025Mi"), TWO, {}, "it was started without room for more"),
    "no device, by an older virt-handler": (
        ONE,
        TWO,
        {"memory": {"guestAtBoot": "1Gi", "guestCurrent": "1Gi"}},
        "it was started without room for more",
    ),
    "it cannot be migrated": (ONE, TWO, {"conditions": [FIXED]}, "and it cannot be migrated"),
    "unknown amount at boot": (ONE, TWO, {"memory": None}, "its memory at boot is unknown"),
}


@pytest.mark.parametrize(("was", "now", "facts", "why"), REFUSED.values(), ids=REFUSED)
def test_a_change_that_requires_a_restart_is_named(was: Json, now: Json, facts: Json, why: str) -> None:
    world = a_change(was, now, **facts)
    assert find_change(world) is None
    message = restart_message(world)
    assert message.startswith("domain.memory.guest was changed in the template spec, and ")
    assert why in message


def test_the_next_change_waits_for_a_running_migration() -> None:
    world = a_change(ONE, TWO, migrationState=MOVING)
    assert find_change(world) is None
    assert restart_required(world) is None


@pytest.mark.parametrize("guest", ["1Gi", "2Gi"], ids=["taken back", "less"])
def test_an_amount_that_no_node_can_hold_is_reduced_without_a_restart(guest: str) -> None:
    """The guest was not given the last amount yet, and may never get it."""
    spec = {"domain": {**memory("4Gi", maxGuest="4Gi")["domain"], "cpu": {"sockets": 1, "maxSockets": 4}}}
    world = a_change(memory("4Gi"), memory(guest), spec=spec)
    change = find_change(world)
    assert change is not None
    assert change["spec"] == {"domain": {"memory": {"guest": guest}}}
    assert restart_required(world) is None


def test_with_staged_updates_memory_changes_at_the_next_start() -> None:
    world = a_change(ONE, TWO, configuration=STAGED)
    assert find_change(world) is None
    message = restart_message(world)
    assert "a non-live-updatable field was changed in the template spec: " in message
    assert "domain.memory.guest;" in message


def test_another_maximum_requires_a_restart() -> None:
    message = restart_message(a_change(memory("1Gi", maxGuest="2Gi"), memory("1Gi", maxGuest="3Gi")))
    assert "template spec: domain.memory.maxGuest;" in message


def test_the_effects_of_changed_memory_are_not_named_as_template_changes() -> None:
    own = {"requests": {"memory": "1Gi"}}
    cpu = {"cores": 1, "sockets": 1, "threads": 1, "maxSockets": 4}
    grown = memory("2Gi", maxGuest="4Gi", cpu=cpu, resources={"requests": {"memory": "2Gi"}})["domain"]
    was, now = memory("1Gi", resources=own), {**memory("2Gi", resources=own), "hostname": "web"}
    message = restart_message(a_change(was, now, spec={"domain": grown}))
    assert "domain.memory" not in message
    assert "domain.resources" not in message


def test_patches_of_the_same_part_are_merged() -> None:
    first, other = {"a": {"b": 1, "c": {"d": 2}}}, {"a": {"c": {"e": 3}}, "f": 4}
    assert merged(first, other) == {"a": {"b": 1, "c": {"d": 2, "e": 3}}, "f": 4}
    assert first == {"a": {"b": 1, "c": {"d": 2}}}
