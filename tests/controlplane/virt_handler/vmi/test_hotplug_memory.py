# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory hot-plug: when it is requested, and what the status shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevirt_api.names import GUEST_MEMORY

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.hotplug import is_to_be_still
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import FailedOperation, PlugMemory, World
from tests.controlplane.virt_handler.builders import (
    POD_UID,
    RUNNING,
    a_launcher,
    a_world,
    observed,
    pod_object,
    seen,
    vmi_object,
)

GIB = 1 << 30


def a_guest(
    guest: str = "2Gi",
    *,
    requested: int | None = 0,
    taken: int = 0,
    made_for: int | None = 2 * GIB,
    most: str | None = "4Gi",
    phase: str = "Running",
    **launcher: Any,
) -> World:
    """A guest that booted with 1 GiB, in a Pod made for `made_for` bytes."""
    vmi = vmi_object(phase)
    vmi["spec"]["domain"]["memory"] = {"guest": guest, **({"maxGuest": most} if most else {})}
    vmi["status"]["memory"] = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    pod = pod_object()
    pod["metadata"]["annotations"] = {} if made_for is None else {GUEST_MEMORY: str(made_for)}
    status = seen(RUNNING, observed=replace(observed(), requested_bytes=requested, taken_bytes=taken))
    return a_world(decode_vmi(vmi), a_launcher(status, decode(pod, Pod), **launcher))


GUESTS: dict[str, tuple[World, int | None]] = {
    "it is to have more": (a_guest(), GIB),
    "it is to have less": (a_guest(requested=3 * GIB), GIB),
    "it is to have what it began with": (a_guest("1Gi", requested=GIB, made_for=GIB), 0),
    "it was asked to have that": (a_guest(requested=GIB), None),
    "it has no device for that": (a_guest(requested=None), None),
    "it was started without room": (a_guest(most=None), None),
    "it is to have more than there is room for": (a_guest("8Gi", made_for=8 * GIB), None),
    "it is to have less than it began with": (a_guest("512Mi", made_for=GIB // 2), None),
    "its Pod was made for less": (a_guest(made_for=GIB), None),
    "its Pod was made for more": (a_guest(made_for=3 * GIB), None),
    "its Pod does not say": (a_guest(made_for=None), None),
    "something else is being done": (a_guest(operation="resume"), None),
    "it was tried a moment ago": (
        a_guest(failed_operation=FailedOperation("no", is_refusal=False, at=1000.0, count=3)),
        None,
    ),
    "its run is not told of yet": (a_guest(phase="Scheduled"), None),
}


@pytest.mark.parametrize(("world", "requested"), GUESTS.values(), ids=GUESTS)
def test_memory_is_requested_if_the_pod_has_room_for_it(world: World, requested: int | None) -> None:
    requests = [step for step in decide(world).steps if isinstance(step, PlugMemory)]
    because = "it is in a Pod that was made for it"
    assert requests == ([] if requested is None else [PlugMemory(POD_UID, requested, because)])


@pytest.mark.parametrize(
    ("world", "requested", "current"),
    [
        (a_guest(requested=GIB, taken=GIB), "2Gi", "2Gi"),
        (a_guest("2048Mi", requested=GIB, taken=GIB), "2048Mi", "2048Mi"),
        (a_guest(requested=GIB, taken=GIB // 2), "2Gi", "1536Mi"),
        (a_guest(), "1Gi", "1Gi"),
        (a_guest(requested=None), None, "1Gi"),
        (a_guest(requested=None, most=None), "1Gi", "1Gi"),
        (a_guest(requested=1 << 50, taken=1 << 50), "4Gi", "4Gi"),
    ],
    ids=["it has it", "spelled by somebody", "some", "not asked yet", "no device", "no room", "more than there is"],
)
def test_the_status_shows_requested_and_actual_memory(world: World, requested: str | None, current: str) -> None:
    assert world.vmi is not None
    memory_status = (derive_status(world, None) or world.vmi.status).memory
    assert memory_status is not None
    assert (memory_status.guest_at_boot, memory_status.guest_requested, memory_status.guest_current) == (
        "1Gi",
        requested,
        current,
    )


@pytest.mark.parametrize(
    ("requested", "taken", "is_kvm", "is_still"),
    [
        (GIB, GIB, False, True),
        (0, GIB, False, True),
        (GIB, 0, False, True),
        (0, 0, False, False),
        (GIB, GIB, True, False),
    ],
    ids=["it has more", "it is giving it back", "it may take it", "it has no more", "on a processor of its own"],
)
def test_an_emulated_guest_with_plugged_memory_is_sent_paused(
    requested: int, taken: int, is_kvm: bool, is_still: bool
) -> None:
    described = replace(observed(), is_kvm=is_kvm, requested_bytes=requested, taken_bytes=taken)
    assert is_to_be_still(seen(RUNNING, observed=described)) is is_still
