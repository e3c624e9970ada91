# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirtd with one domain, as the launcher sees it through controlplane.hypervisor."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import Disconnected, TimedOut, WrongState
from controlplane.hypervisor.events import ConnectionClosed, Event, EventQueue, LifecycleChanged

RUNNING = State(Life.RUNNING, "booted")


@dataclass
class FakeLibvirtd:
    """state_now None: no domain is defined. obeys: the guest shuts down when the power button is pressed."""

    state_now: State | None = None
    obeys: bool = True
    refusals: int = 0
    """Number of connections that fail first."""
    commands: list[str] = field(default_factory=list)
    connections: list[FakeConnection] = field(default_factory=list)
    is_watched: asyncio.Event = field(default_factory=asyncio.Event)

    pings: int = 0
    is_hung: bool = False
    is_mute: bool = False
    """It does not answer questions about its domain."""
    is_stuck: bool = False
    """It cannot destroy its domain."""

    async def open_connection(self, uri: str, **_unused: object) -> FakeConnection:
        if self.refusals:
            self.refusals -= 1
            raise Disconnected(f"cannot connect to {uri}: nobody listens")
        self.connections.append(FakeConnection(self))
        return self.connections[-1]

    def change(self, state: State | None, kind: str) -> None:
        self.state_now = state
        self.put(LifecycleChanged("uid", kind))

    def die(self) -> None:
        self.put(ConnectionClosed("eof"))

    def put(self, event: Event) -> None:
        for connection in self.connections:
            connection.events.put(event)


class FakeConnection:
    def __init__(self, libvirtd: FakeLibvirtd) -> None:
        self._libvirtd = libvirtd
        self.events = EventQueue()
        self.is_closed = False

    async def guest(self, name: str) -> FakeGuest | None:
        self._libvirtd.is_watched.set()
        return FakeGuest(self._libvirtd) if self._libvirtd.state_now is not None else None

    async def ping(self, deadline_seconds: float) -> None:
        self._libvirtd.pings += 1
        if self._libvirtd.is_hung:
            raise TimedOut(f"cannot ping: no answer within {deadline_seconds:g} s")

    async def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeGuest:
    libvirtd: FakeLibvirtd

    async def state(self) -> State:
        if self.libvirtd.is_mute:
            raise TimedOut("no answer")
        assert self.libvirtd.state_now is not None
        return self.libvirtd.state_now

    async def shutdown(self) -> None:
        self._execute("shutdown", State(Life.SHUT_OFF, "shutdown") if self.libvirtd.obeys else None)

    async def destroy(self) -> None:
        self._execute("destroy", None if self.libvirtd.is_stuck else State(Life.SHUT_OFF, "destroyed"))

    async def kill(self) -> None:
        self._execute("kill", State(Life.SHUT_OFF, "destroyed"))

    def _execute(self, verb: str, state: State | None) -> None:
        if self.libvirtd.state_now is None or not self.libvirtd.state_now.life.is_up:
            raise WrongState(f"cannot {verb} domain uid: it is not running")
        self.libvirtd.commands.append(verb)
        if state is not None:
            self.libvirtd.change(state, "stopped")
