# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt and virt-node as a session uses them: the schedule carries out calls and delivers events.

Calls reach the true launcher. A lost connection changes nothing there.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.api.objects.resources import Key
from controlplane.domain.state import State
from controlplane.hypervisor.errors import (
    AgentSilent,
    Disconnected,
    HypervisorError,
    InvalidDomain,
    NoSuchDomain,
    TimedOut,
    WrongState,
)
from controlplane.hypervisor.events import AgentChanged, ConnectionClosed, EventQueue, LifecycleChanged
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.ports import NodeAway, NotThere, Result
from controlplane.virt_handler.vmi.world import Traces
from tests.controlplane.simulation import launcher as host
from tests.controlplane.simulation.agent import FREEZE, THAW, AgentError
from tests.controlplane.simulation.doubts import Doubts
from tests.controlplane.simulation.node import Node
from tests.support.calls import ASK, LOOK, PREPARE, Call

REPORT = b'{"version": 1, "container_disks": []}'
CLOSED, OPEN = 'name="org.qemu.guest_agent.0"', 'name="org.qemu.guest_agent.0" state="connected"'
"""The XML of an agent's channel."""
ORDERS = (FREEZE, THAW)
"""Commands of an agent that change its state."""
LATE_ANSWERS = 0.3
"""How often the state of a domain changes between libvirt's read and its response."""
OVERDUE_STARTS = 0.7
"""How often a slow QEMU exceeds the time-out of a start."""


@dataclass(frozen=True, slots=True)
class Socket:
    """The socket of a launcher, by the UID of its Pod."""

    path: str

    def close(self) -> None:
        """There is nothing to close."""


class LauncherConnections:
    """Open sessions of one process, and the virt-node of its node. Implements launchers.ports.Node."""

    trouble = ""

    def __init__(self, node: Node, rng: random.Random, settle: Callable[[], None], doubts: Doubts) -> None:
        self._node = node
        self.doubts = doubts
        self._rng = rng
        self.settle = settle
        self.guest_kind: type[LauncherGuest] = LauncherGuest
        self._open: list[LauncherConnection] = []
        self.unpaused: Counter[str] = Counter()
        """By the UIDs of Pods: how many users are asking to resume or thaw their guests now."""
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    def steps(self) -> list[Callable[[], None]]:
        """List what can be delivered now: a new listener, an event, the end of a connection."""
        self._waiting = [item for item in self._waiting if not item[1].done()]
        here = [self._tell_here for uid, _unused in self._waiting if self._is_listening(uid)]
        return here[:1] + [step for item in self._open if (step := item.step()) is not None]

    def subscribe(self, _unused: Callable[[], None]) -> None:
        """The connection never changes."""

    async def open_socket(self, pod_uid: str) -> Socket:
        """Wait for libvirtd's socket, as inotify does."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((pod_uid, waiting))
        await waiting
        return Socket(pod_uid)

    async def read_report(self, pod_uid: str) -> bytes:
        def read() -> bytes:
            if pod_uid not in self._node.launchers:
                raise NotThere("there is no such directory")
            return REPORT

        return await Call("read the report of", "launcher", self._vmi(pod_uid), read, NodeAway)  # type: ignore[no-any-return]

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """The launcher has them already."""

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        def find() -> PodInterface:
            if not self._is_listening(pod_uid):
                raise NotThere("there is no such Pod")
            return PodInterface(("10.0.0.1",), 1500)

        return await Call(  # type: ignore[no-any-return]
            PREPARE, "domain", self._vmi(pod_uid), find, NodeAway, {"pod_uid": pod_uid}
        )

    async def find_traces(self, pod_uid: str, *, wait_seconds: float = 0.0) -> Traces:
        return await Call(LOOK, "launcher", Key("", pod_uid), lambda: self._traces(pod_uid), NodeAway)  # type: ignore[no-any-return]

    async def connect(self, path: str) -> LauncherConnection:
        """Connect to the socket."""
        connection: LauncherConnection = await Call(
            "connect to", "domain", self._vmi(path), lambda: self._connect(path), Disconnected
        )
        self._open.append(connection)
        return connection

    def drop(self, connection: LauncherConnection) -> None:
        """Record that a connection was closed."""
        self._open.remove(connection)

    def is_late(self) -> bool:
        """Whether a response is delayed."""
        return self._rng.random() < LATE_ANSWERS

    def is_overdue(self) -> bool:
        """Whether a start times out before QEMU is up."""
        return self._rng.random() < OVERDUE_STARTS

    def end(self, launcher: host.Launcher) -> None:
        """Record that a guest is asked to end."""
        self._node.endings.append((launcher.vmi_uid, launcher.pod_uid))

    def _connect(self, pod_uid: str) -> LauncherConnection:
        there = self._node.launchers.get(pod_uid)
        if there is None or not there.is_listening:
            raise Disconnected("connection refused")
        return LauncherConnection(self, there)

    def _is_listening(self, pod_uid: str) -> bool:
        there = self._node.launchers.get(pod_uid)
        return there is not None and there.is_listening

    def _tell_here(self) -> None:
        """Notify the first client that waits for a listening launcher."""
        for uid, waiting in self._waiting:
            if not waiting.done() and self._is_listening(uid):
                waiting.set_result(None)
                break
        self.settle()

    def _vmi(self, pod_uid: str) -> Key:
        there = self._node.launchers.get(pod_uid)
        return Key("", "") if there is None else there.vmi

    def _traces(self, pod_uid: str) -> Traces:
        there = self._node.launchers.get(pod_uid)
        if there is None:
            return Traces(has_directory=False, processes=0)
        emulators = 1 if there.is_running_guest else 0
        return Traces(there.has_directory, 2 if there.is_up else 0, emulators)


class LauncherConnection:
    """A connection to the libvirtd of one launcher, valid while that process lives."""

    def __init__(self, connections: LauncherConnections, there: host.Launcher) -> None:
        self.events = EventQueue()
        self.there = there
        self.connections = connections
        self._daemon, self._seen, self._agents_seen = there.daemon, there.changes, there.agents
        self._is_closed = False

    @property
    def is_good(self) -> bool:
        return self.there.is_listening and self.there.daemon == self._daemon and not self._is_closed

    def step(self) -> Callable[[], None] | None:
        """Deliver the next event to the client."""
        if self._is_closed:
            return None
        if not self.is_good:
            return self._hang_up
        if self._agents_seen != self.there.agents:
            return self._tell_agent
        return self._tell_change if self._seen != self.there.changes else None

    async def guest(self, name: str) -> LauncherGuest | None:
        if not self.is_good:
            raise Disconnected("the connection is gone")
        if name == self.there.vmi_uid and self.there.state is not None:
            return self.connections.guest_kind(self)
        self.connections.doubts.is_seen(self.there)
        return None

    async def load_capabilities(self) -> None:
        """Change nothing."""

    async def define(self, xml: str) -> LauncherGuest:
        self.connections.doubts.begins(self.there)
        await self.call("define", lambda item: item.define(xml))
        return self.connections.guest_kind(self)

    async def close(self) -> None:
        self._is_closed = True
        self.connections.drop(self)

    async def call(self, verb: str, do: Callable[[host.Launcher], object]) -> object:
        """Let libvirtd act when the schedule says so. Raises HypervisorError."""

        def run() -> object:
            if not self.is_good:
                raise Disconnected("the connection is gone")
            try:
                return do(self.there)
            except host.DomainError as error:
                kind = WrongState if error.is_wrong_state else HypervisorError
                raise (InvalidDomain if "kernel" in str(error) else kind)(str(error)) from error

        arguments = {"pod_uid": self.there.pod_uid, "vmi_uid": self.there.vmi_uid}
        return await Call(verb, "domain", self.there.vmi, run, Disconnected, arguments)

    def break_off(self) -> None:
        """Close the connection, as after a timeout."""
        self._is_closed = True
        self.events.put(ConnectionClosed("a call was overdue"))

    def _hang_up(self) -> None:
        self._is_closed = True
        self.events.put(ConnectionClosed("eof"))
        self.connections.settle()

    def _tell_agent(self) -> None:
        self._agents_seen = self.there.agents
        self.events.put(AgentChanged(self.there.vmi_uid, self.there.agent is not None))
        self.connections.settle()

    def _tell_change(self) -> None:
        self._seen = self.there.changes
        self.events.put(LifecycleChanged(self.there.vmi_uid, "other"))
        self.connections.settle()


class LauncherGuest:
    """The one domain of a launcher."""

    def __init__(self, connection: LauncherConnection) -> None:
        self._connection = connection

    async def start(self, *, is_paused: bool = False) -> None:
        """Take two steps: between them the domain is active, and may still fail."""
        there, doubts = self._connection.there, self._connection.connections.doubts
        try:
            await self._connection.call("launch", lambda item: item.launch(is_paused=is_paused))
            if there.hesitation and self._connection.connections.is_overdue():
                self._connection.break_off()
                raise TimedOut("no answer within the time that a start has")
            await self._connection.call(
                "finish start of", lambda item: item.finish_start() if item.is_starting else None
            )
        except (Disconnected, TimedOut):
            doubts.is_open(there)
            raise
        doubts.is_up(there)

    async def shutdown(self) -> None:
        await self._end("shut down", lambda item: item.press_power())

    async def destroy(self) -> None:
        await self._end("destroy", lambda item: item.destroy())

    async def kill(self) -> None:
        await self._end("destroy", lambda item: item.destroy())

    async def resume(self) -> None:
        requested = self._connection.connections.unpaused
        await self._connection.call("resume", lambda item: item.resume(by_user=requested[item.pod_uid] > 0))

    async def set_vcpus(self, count: int) -> None:
        await self._connection.call("plug CPUs into", lambda item: item.plug(count))

    async def set_memory(self, requested_bytes: int) -> None:
        """No guest here can get more memory."""
        raise HypervisorError(f"cannot give {requested_bytes} bytes to a guest that has no device for them")

    async def pause(self) -> None:
        await self._connection.call("pause", lambda item: item.pause())

    async def reset(self) -> None:
        """Not used here."""

    async def reboot(self) -> None:
        """Not used here."""

    async def ask_agent(self, command: str, seconds: int) -> str:
        """Send a command to the agent; a silent one times out at once, to save steps."""
        there, name = self._connection.there, json.loads(command)["execute"]

        def run() -> str:
            if not self._connection.is_good:
                raise Disconnected("the connection is gone")
            try:
                return there.ask_agent(name)
            except AgentError as error:
                kind = AgentSilent if error.is_silent else HypervisorError
                raise kind(f"{name}: {error} within {seconds} s") from error

        arguments = {"pod_uid": there.pod_uid, "vmi_uid": there.vmi_uid}
        return await Call(name if name in ORDERS else ASK, "agent", there.vmi, run, AgentSilent, arguments)  # type: ignore[no-any-return]

    async def set_time(self, now: Callable[[], float], seconds: int) -> None:
        await self.ask_agent(f'{{"execute": "guest-set-time", "arguments": {{"time": {now():.0f}}}}}', seconds)

    async def state(self) -> State:
        state = await self._connection.call("look at", lambda item: item.state)
        if self._connection.connections.is_late():
            await self._connection.call("hear of", lambda _unused: None)
        self._connection.connections.doubts.is_seen(self._connection.there)
        if not isinstance(state, State):
            raise NoSuchDomain("the domain does not exist")
        return state

    async def described(self, read: Callable[[str], Result]) -> Result:
        there = self._connection.there
        return read(there.xml if there.agent is None else there.xml.replace(CLOSED, OPEN))

    async def _end(self, verb: str, say: Callable[[host.Launcher], None]) -> None:
        def end(launcher: host.Launcher) -> None:
            self._connection.connections.end(launcher)
            say(launcher)

        await self._connection.call(verb, end)
