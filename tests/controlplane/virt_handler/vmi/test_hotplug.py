# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU hot-plug: when it happens, and what the status shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevirt_api.names import VCPUS

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.domain.state import Life, State
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import FailedOperation, PlugCpus, World
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

PLUG = PlugCpus(POD_UID, 2, "it is in a Pod that was made for them")


def a_guest(
    *,
    sockets: int = 2,
    has: int = 1,
    made_for: str | None = "2",
    phase: str = "Running",
    state: State = RUNNING,
    told: int = 1,
    deleting: bool = False,
    **launcher: Any,
) -> World:
    """A guest with `has` virtual CPUs (0: all that it can have) in a Pod. told: how many its status shows."""
    vmi = vmi_object(phase, deleting=deleting)
    vmi["spec"]["domain"]["cpu"] = {"sockets": sockets, "maxSockets": 4}
    vmi["status"]["currentCPUTopology"] = {"cores": 1, "sockets": told, "threads": 1}
    pod = pod_object()
    pod["metadata"]["annotations"] = {} if made_for is None else {VCPUS: made_for}
    status = seen(state, observed=replace(observed(), vcpus=has))
    return a_world(decode_vmi(vmi), a_launcher(status, decode(pod, Pod), **launcher))


GUESTS: dict[str, tuple[World, bool]] = {
    "it has fewer": (a_guest(), True),
    "it was paused by a person": (a_guest(state=State(Life.PAUSED, "user")), True),
    "it has them": (a_guest(has=2), False),
    "it has more": (a_guest(has=3), False),
    "it has all that it can have": (a_guest(has=0), False),
    "its Pod was made for fewer": (a_guest(made_for="1"), False),
    "its Pod does not say": (a_guest(made_for=None), False),
    "something else is being done": (a_guest(operation="resume"), False),
    "it was tried a moment ago": (
        a_guest(failed_operation=FailedOperation("no", is_refusal=False, at=1000.0, count=3)),
        False,
    ),
    "its run is not told of yet": (a_guest(phase="Scheduled"), False),
}


@pytest.mark.parametrize(("world", "is_plugged"), GUESTS.values(), ids=GUESTS)
def test_cpus_are_plugged_if_the_pod_has_room_for_them(world: World, is_plugged: bool) -> None:
    assert (PLUG in decide(world).steps) is is_plugged


def test_a_terminating_guest_gets_no_cpus() -> None:
    assert PLUG not in decide(replace(a_guest(deleting=True), deleting_since=1000.0)).steps


def told(world: World) -> Any:
    status = derive_status(world, None)
    assert world.vmi is not None
    return (status or world.vmi.status).current_cpu_topology


@pytest.mark.parametrize(
    ("world", "sockets"),
    [
        (a_guest(has=2), 2),
        (a_guest(has=1), 1),
        (a_guest(has=0, sockets=4), 4),
        (a_guest(has=0), 1),
        (a_guest(has=2, sockets=3), 2),
    ],
    ids=["it has got them", "not yet", "all that it can have", "more than it is to have", "others are wanted by now"],
)
def test_the_status_shows_the_guests_actual_cpus(world: World, sockets: int) -> None:
    assert told(world).sockets == sockets
