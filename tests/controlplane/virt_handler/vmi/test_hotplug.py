# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU and memory hotplug: when it is requested, and what the status shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevirt_api.names import GUEST_MEMORY, VCPUS

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.domain.state import Life, State
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.hotplug import is_to_be_still
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import FailedOperation, PlugCpus, PlugMemory, World
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
FAILED = FailedOperation("no", is_refusal=False, at=1000.0, count=3)


def a_guest(
    *,
    sockets: int = 1,
    vcpus: int = 1,
    reported: int = 1,
    pod_vcpus: str | None = "1",
    memory: str = "1Gi",
    most: str | None = "4Gi",
    requested: int | None = 0,
    taken: int = 0,
    pod_memory: int | None = GIB,
    phase: str = "Running",
    state: State = RUNNING,
    **launcher: Any,
) -> World:
    """Return a guest that booted with 1 GiB. sockets, memory: of the spec. vcpus (0: all), requested, taken: its own.

    reported: sockets in its status. pod_vcpus, pod_memory: what its Pod was created for.
    """
    vmi = vmi_object(phase)
    vmi["spec"]["domain"]["cpu"] = {"sockets": sockets, "maxSockets": 4}
    vmi["spec"]["domain"]["memory"] = {"guest": memory, **({"maxGuest": most} if most else {})}
    vmi["status"]["currentCPUTopology"] = {"cores": 1, "sockets": reported, "threads": 1}
    vmi["status"]["memory"] = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    pod = pod_object()
    annotations = {VCPUS: pod_vcpus, GUEST_MEMORY: None if pod_memory is None else str(pod_memory)}
    pod["metadata"]["annotations"] = {name: value for name, value in annotations.items() if value is not None}
    domain = replace(observed(), vcpus=vcpus, requested_bytes=requested, taken_bytes=taken)
    return a_world(decode_vmi(vmi), a_launcher(seen(state, observed=domain), decode(pod, Pod), **launcher))


def cpus(sockets: int = 2, vcpus: int = 1, pod_vcpus: str | None = "2", **fields: Any) -> World:
    return a_guest(sockets=sockets, vcpus=vcpus, pod_vcpus=pod_vcpus, **fields)


def memory(guest: str = "2Gi", pod_memory: int | None = 2 * GIB, **fields: Any) -> World:
    return a_guest(memory=guest, pod_memory=pod_memory, **fields)


def status_of(world: World) -> VirtualMachineInstanceStatus:
    assert world.vmi is not None
    return derive_status(world, None) or world.vmi.status


CPUS: dict[str, tuple[World, bool]] = {
    "fewer": (cpus(), True),
    "fewer, paused": (cpus(state=State(Life.PAUSED, "user")), True),
    "as many": (cpus(vcpus=2), False),
    "more": (cpus(vcpus=3), False),
    "all": (cpus(vcpus=0), False),
    "Pod for fewer": (cpus(pod_vcpus="1"), False),
    "Pod for an unknown number": (cpus(pod_vcpus=None), False),
    "during an operation": (cpus(operation="resume"), False),
    "failed a moment ago": (cpus(failed_operation=FAILED), False),
    "not reported as running": (cpus(phase="Scheduled"), False),
    "terminating": (replace(cpus(), deleting_since=1000.0), False),
}


@pytest.mark.parametrize(("world", "is_plugged"), CPUS.values(), ids=CPUS)
def test_cpus_are_plugged_if_the_pod_has_room_for_them(world: World, is_plugged: bool) -> None:
    plug = PlugCpus(POD_UID, 2, "its Pod has the resources for them")
    assert (plug in decide(world).steps) is is_plugged


@pytest.mark.parametrize(
    ("world", "sockets"),
    [(cpus(vcpus=2), 2), (cpus(), 1), (cpus(4, 0), 4), (cpus(vcpus=0), 1), (cpus(3, 2), 2)],
    ids=["plugged", "not yet", "all", "all, more than wanted", "others are wanted by now"],
)
def test_the_status_shows_the_guests_actual_cpus(world: World, sockets: int) -> None:
    topology = status_of(world).current_cpu_topology
    assert topology is not None
    assert topology.sockets == sockets


MEMORY: dict[str, tuple[World, int | None]] = {
    "more": (memory(), GIB),
    "less": (memory(requested=3 * GIB), GIB),
    "as at boot": (memory("1Gi", GIB, requested=GIB), 0),
    "requested already": (memory(requested=GIB), None),
    "no device": (memory(requested=None), None),
    "no maximum": (memory(most=None), None),
    "more than the maximum": (memory("8Gi", 8 * GIB), None),
    "less than at boot": (memory("512Mi", GIB // 2), None),
    "Pod for less": (memory(pod_memory=GIB), None),
    "Pod for more": (memory(pod_memory=3 * GIB), None),
    "Pod for an unknown amount": (memory(pod_memory=None), None),
    "during an operation": (memory(operation="resume"), None),
    "failed a moment ago": (memory(failed_operation=FAILED), None),
    "not reported as running": (memory(phase="Scheduled"), None),
}


@pytest.mark.parametrize(("world", "requested"), MEMORY.values(), ids=MEMORY)
def test_memory_is_requested_if_the_pod_has_room_for_it(world: World, requested: int | None) -> None:
    requests = [step for step in decide(world).steps if isinstance(step, PlugMemory)]
    because = "its Pod has the resources for it"
    assert requests == ([] if requested is None else [PlugMemory(POD_UID, requested, because)])


@pytest.mark.parametrize(
    ("world", "requested", "current"),
    [
        (memory(requested=GIB, taken=GIB), "2Gi", "2Gi"),
        (memory("2048Mi", requested=GIB, taken=GIB), "2048Mi", "2048Mi"),
        (memory(requested=GIB, taken=GIB // 2), "2Gi", "1536Mi"),
        (memory(), "1Gi", "1Gi"),
        (memory(requested=None), None, "1Gi"),
        (memory(requested=None, most=None), "1Gi", "1Gi"),
        (memory(requested=1 << 50, taken=1 << 50), "4Gi", "4Gi"),
    ],
    ids=["taken", "spelled by a user", "some taken", "not requested", "no device", "no maximum", "above the maximum"],
)
def test_the_status_shows_requested_and_actual_memory(world: World, requested: str | None, current: str) -> None:
    status = status_of(world).memory
    assert status is not None
    assert (status.guest_at_boot, status.guest_requested, status.guest_current) == ("1Gi", requested, current)


@pytest.mark.parametrize(
    ("requested", "taken", "is_kvm", "is_still"),
    [
        (GIB, GIB, False, True),
        (0, GIB, False, True),
        (GIB, 0, False, True),
        (0, 0, False, False),
        (GIB, GIB, True, False),
    ],
    ids=["plugged", "being unplugged", "being plugged", "none", "KVM"],
)
def test_an_emulated_guest_with_plugged_memory_is_sent_paused(
    requested: int, taken: int, is_kvm: bool, is_still: bool
) -> None:
    described = replace(observed(), is_kvm=is_kvm, requested_bytes=requested, taken_bytes=taken)
    assert is_to_be_still(seen(RUNNING, observed=described)) is is_still
