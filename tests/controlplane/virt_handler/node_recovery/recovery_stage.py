# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recovering node with guests. NodeRecovery is real; everything around it is fake."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Unavailable
from controlplane.engine.ports import Json
from controlplane.virt_handler.node_recovery.recovery import NodeRecovery
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact
from controlplane.virt_handler.vmi.world import Destroy, Launcher, Operation, Traces
from tests.controlplane.virt_handler.builders import (
    OFF,
    POD_UID,
    RUNNING,
    VMI_UID,
    a_launcher,
    pod_object,
    seen,
    vmi_object,
)
from tests.controlplane.virt_handler.fakes import FakeApi, FakeCache, FakeClock, FakeHeartbeat

YET_TO_SAY = "the API server has not responded yet which guests still belong to this node"
BEAT_SECONDS = 10
MANY_TURNS = 50


class FakeGuest:
    """A connected launcher with a guest."""

    def __init__(self, clock: FakeClock, *, uid: str = VMI_UID, pod_uid: str = POD_UID, name: str = "web") -> None:
        pod = pod_object(pod_uid, owner_uid=uid)
        pod["metadata"]["ownerReferences"][0]["name"] = name
        self.known: Launcher = a_launcher(seen(), decode(pod, Pod))
        self.is_up, self.is_deaf, self.is_cut, self.is_busy = True, False, False, False
        self.ends = 0
        self._clock = clock

    def launcher(self) -> Launcher:
        return self.known

    def admit(self) -> None:
        self.see(is_admitted=True, is_connected=True, state=RUNNING)

    def perform(self, action: Operation) -> None:
        assert isinstance(action, Destroy)
        if self.is_busy:
            raise NoContact("the launcher is busy with another operation")
        self.ends += 1
        self.see(destroy_asked_at=self._clock.monotonic())
        if not self.is_deaf:
            self.is_up = False
            self.see(state=OFF)

    def see(self, **changes: Any) -> None:
        self.known = replace(self.known, status=replace(self.known.status, **changes))


@dataclass
class Stage:
    """A node with guests. Time passes while the recovery waits."""

    clock: FakeClock = field(default_factory=FakeClock)
    guests: dict[str, FakeGuest] = field(default_factory=dict)
    can_look: bool = True
    events: list[tuple[Json, VmiEvent]] = field(default_factory=list)
    cleared: list[float] = field(default_factory=list)
    """Times at which the recovery completed."""
    rests: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turns: deque[float] = deque(maxlen=MANY_TURNS)
        self.api = FakeApi(FakeCache())
        self.heard = FakeHeartbeat(self.clock)
        self.recovery = NodeRecovery(
            self,
            self.api,
            self.clock,
            self.heard,
            changed=lambda: self.cleared.append(self.clock.seconds),
            record_event=self._record_event,
            wait=self._wait,
        )

    def add(self, guest: FakeGuest) -> FakeGuest:
        self.guests[guest.known.pod.uid] = guest
        return guest

    def launchers(self) -> tuple[Launcher, ...]:
        return tuple(guest.known for guest in self.guests.values())

    def session(self, pod_uid: str) -> Any:
        return self.guests.get(pod_uid)

    async def find_traces(self, pod_uid: str) -> Traces:
        if not self.can_look:
            raise CannotLook("virt-node is away")
        guest = self.guests.get(pod_uid)
        is_up = guest is not None and guest.is_up
        return Traces(has_directory=True, processes=1, emulators=1 if is_up else 0)

    async def play(self, seconds: float, *, is_cut_off: bool = False) -> None:
        """Let time pass. The Lease is renewed, unless the node is cut off."""
        self._until = self.clock.seconds + seconds
        if is_cut_off:
            self.heard.is_cut_off = True
        else:
            self.heard.beat()
        running = asyncio.create_task(self.recovery.run())
        with suppress(asyncio.CancelledError):
            await running

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        self.rests.append(seconds)
        self._turns.append(self.clock.seconds)
        assert self._turns.count(self.clock.seconds) < MANY_TURNS, "it goes round and round, and no time passes"
        due = min(self._until, self.clock.seconds + max(seconds, 0.001))
        while self.clock.seconds < due and not event.is_set():
            self.clock.seconds = min(due, self.clock.seconds + BEAT_SECONDS)
        if self.clock.seconds >= self._until:
            raise asyncio.CancelledError

    async def _record_event(self, about: Json, event: VmiEvent) -> None:
        self.events.append((about, event))


class Server:
    """An API server that fails for some of the VMIs."""

    def __init__(self, stage: Stage) -> None:
        self.mute: set[str] = set()
        self.asked: list[str] = []
        self._get = stage.api.get
        stage.api.get = self.get  # type: ignore[method-assign]

    async def get(self, resource: Any, key: Key) -> Json:
        self.asked.append(key.name)
        if key.name in self.mute:
            raise Unavailable(f"cannot get {key}: 500 unable to decode")
        return await self._get(resource, key)


def a_guest(stage: Stage, name: str) -> FakeGuest:
    """Add a guest. The node owns it once its VMI is stored (own)."""
    return stage.add(FakeGuest(stage.clock, uid=f"{name}-uid", pod_uid=f"{name}-pod", name=name))


def own(stage: Stage, name: str, phase: str = "Running") -> None:
    body = vmi_object(phase)
    body["metadata"] |= {"name": name, "uid": f"{name}-uid"}
    body["status"]["activePods"] = {f"{name}-pod": "node-1"}
    stage.api.store(body)
