# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The transport of a guest as virt-handler uses it: listeners, tunnel, and libvirt at both ends. Each step has its own
fate.

The order of the steps, and the handling of errors, is that of libvirt (client-managed, version 3): begin, prepare,
perform, finish, confirm. virt-handler's own part is real, from its request to the resumed guest.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import libvirt

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Clock
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.domain import Domain, Progress
from controlplane.hypervisor.errors import Disconnected, HypervisorError, WrongState
from controlplane.hypervisor.events import ConnectionClosed
from controlplane.virt_handler.incoming.world import TunnelAddress
from controlplane.virt_handler.launchers.ports import Result, TransferRequest
from controlplane.virt_handler.migration.sender import Sender
from tests.controlplane.simulation.launcher import DomainError
from tests.controlplane.simulation.libvirt import LauncherGuest
from tests.controlplane.simulation.migrations.guest import MigratingLauncher, Stream
from tests.controlplane.simulation.node import Node
from tests.support.calls import Call

STEPS = ("take in", "send", "send all of", "finish", "confirm", "take back", "resume at the target")
"""Steps of a transfer: calls between which anything may happen."""
LENGTHS = (1, 1, 1, 2, 5)
SLOW_SECONDS = 5.0
PARTS = 100
SHUT = "shut the door for"
"""A call that cannot fail, but takes time."""


@dataclass(slots=True)
class OpenDoor:
    door: TunnelAddress
    vmi_uid: str
    moving: MigrationState
    node: Node
    is_open: bool = True


@dataclass(slots=True)
class Fabric:
    """Tunnels, and the streams through them."""

    nodes: Mapping[str, Node]
    rng: random.Random
    endless: float
    """The share of guests that write faster than they are sent."""
    doors: list[OpenDoor] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    ports: int = 1000

    def listen(self, vmi_uid: str, moving: MigrationState, node: Node) -> OpenDoor:
        self.ports += 1
        door = OpenDoor(TunnelAddress(node.name, self.ports), vmi_uid, moving, node)
        self.doors.append(door)
        return door

    def shut(self, tunnel: OpenDoor) -> None:
        tunnel.is_open = False
        self.doors = [each for each in self.doors if each is not tunnel]

    def dial(self, moving: MigrationState, source: Node) -> There:
        """Connect to the listener that a migration names. Raises Disconnected."""
        ports = {int(port) for port in moving.target_direct_migration_node_ports}
        here = (
            door for door in self.doors if door.door.address == moving.target_node_address and door.door.port in ports
        )
        result = next(here, None)
        if result is None or result.node.is_unreachable or source.is_unreachable:
            raise Disconnected("connection refused")
        bound = (result.moving.migration_uid, result.moving.source_pod_uid, result.moving.target_pod_uid)
        if bound != (moving.migration_uid, moving.source_pod_uid, moving.target_pod_uid):
            raise Disconnected("turned away: it is of another migration")
        there = result.node.launchers.get(moving.target_pod_uid)
        if not isinstance(there, MigratingLauncher) or not there.is_listening:
            raise Disconnected("the launcher refuses connections")
        return There(self, result, there, source)


class NoEvents:
    """Delivers nothing: events before libvirt's response are not simulated, and the response decides."""

    async def get(self) -> ConnectionClosed:
        return ConnectionClosed("eof")


class There:
    """The target's libvirtd, through the tunnel. In place of a hypervisor.Connection."""

    events = NoEvents()

    def __init__(self, fabric: Fabric, door: OpenDoor, there: MigratingLauncher, source: Node) -> None:
        self._fabric, self._door, self.there, self._source = fabric, door, there, source
        self._daemon = there.daemon
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        is_reached = not (self._source.is_unreachable or self._door.node.is_unreachable)
        is_there = self.there.is_listening and self.there.daemon == self._daemon
        return self._door.is_open and is_reached and is_there and not self._is_closed

    async def close(self) -> None:
        self._is_closed = True

    async def receive(
        self, guest: Domain, parameters: Mapping[str, object], flags: int, *, deadline_seconds: float
    ) -> ThereGuest:
        """Receive a guest, and leave it paused. Raises HypervisorError."""
        del deadline_seconds
        assert flags & libvirt.VIR_MIGRATE_PAUSED, "the guest would go on by itself"
        leaver, rng = cast(LeavingGuest, guest), self._fabric.rng
        endless = rng.random() < self._fabric.endless
        stream = Stream(leaver.here, self.there, lambda: self.is_open, rng.choice(LENGTHS), endless)
        self._fabric.streams.append(stream)
        leaver.here.stream, leaver.here.has_sent_all = stream, False
        xml = str(parameters[libvirt.VIR_MIGRATE_PARAM_DEST_XML])
        try:
            await self.call("take in", lambda there: there.take_in(leaver.here, xml))
            await self._perform(leaver, stream)
            await self.call("finish", lambda there: there.finish())
        except HypervisorError:
            self._is_closed = True
            await self._end(leaver, "take back", stream.give_up)
            raise
        except asyncio.CancelledError:
            self._is_closed = stream.is_over = True
            raise
        await self._end(leaver, "confirm", stream.confirm)
        return ThereGuest(self)

    async def _perform(self, leaver: LeavingGuest, stream: Stream) -> None:
        is_slow = stream.remaining > max(LENGTHS[:-1]) or stream.is_endless
        while stream.remaining > 0:
            await leaver.tell("send", stream.send)
            if is_slow and leaver.here.is_going_on:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stream.aborted.wait(), SLOW_SECONDS)
        await leaver.tell("send all of", stream.send_all)

    @staticmethod
    async def _end(leaver: LeavingGuest, verb: str, do: Callable[[], None]) -> None:
        """Do the last step at the source: its failure is not reported."""
        try:
            with suppress(HypervisorError):
                await leaver.tell(verb, do)
        finally:
            stream = leaver.here.stream
            if stream is not None:
                stream.is_over = True

    async def call(self, verb: str, do: Callable[[MigratingLauncher], None]) -> None:
        """Call the target. Raises HypervisorError; without a response the tunnel is broken."""

        def run() -> None:
            if not self.is_open:
                raise Disconnected("the connection is gone")
            try:
                do(self.there)
            except DomainError as error:
                raise (WrongState if error.is_wrong_state else HypervisorError)(str(error)) from error

        arguments = {"pod_uid": self.there.pod_uid, "vmi_uid": self.there.vmi_uid}
        try:
            await Call(verb, "tunnel", self.there.vmi, run, Disconnected, arguments)
        except Disconnected:
            self._is_closed = True
            raise


class ThereGuest:
    """A guest that has arrived."""

    def __init__(self, there: There) -> None:
        self._there = there
        self.name = there.there.vmi_uid

    async def resume(self) -> None:
        await self._there.call("resume at the target", lambda item: item.resume())


class LeavingGuest(LauncherGuest, Domain):
    """A guest that may leave."""

    @property
    def here(self) -> MigratingLauncher:
        return cast(MigratingLauncher, self._connection.there)

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.here.vmi_uid

    async def tell(self, verb: str, do: Callable[[], None]) -> None:
        await self._connection.call(verb, lambda _unused: do())

    async def abort_job(self) -> None:
        def abort() -> None:
            if self.here.stream is None:
                raise DomainError("no job is active on the domain", is_wrong_state=True)
            self.here.stream.abort()

        await self.tell("abort", abort)

    async def stop_to_send(self) -> None:
        await self.tell("stop", self.here.stop_to_be_sent)

    async def progress(self) -> Progress:
        stream = self.here.stream
        await self.tell("ask for the progress of", lambda: None)
        return Progress(PARTS, 0 if stream is None else stream.remaining, 0)

    async def described(self, read: Callable[[str], Result], *, migratable: bool = False) -> Result:
        del migratable
        return await LauncherGuest.described(self, read)


class TunnelSender(Sender):
    """The real one, on an existing tunnel."""

    def __init__(self, fabric: Fabric, node: Node, clock: Clock) -> None:
        self._fabric, self._here, self._clock = fabric, node, clock
        self._node = cast(Any, None)  # used only for events before libvirt's response
        self._progressed = lambda _key, _progress: None

    async def send(self, order: TransferRequest) -> None:
        def dial() -> There:
            return self._fabric.dial(order.moving, self._here)

        key = cast(LeavingGuest, order.guest).here.vmi
        target: There = await Call("reach", "tunnel", key, dial, Disconnected)
        try:
            await order.writes.begin()
            await self._send(order, cast(Connection, target))
        finally:
            await target.close()


class Tunnels:
    """Tunnels of one process. Implements incoming.ports.Tunnels."""

    def __init__(self, fabric: Fabric, node: Node) -> None:
        self._fabric, self._node = fabric, node
        self._open: dict[str, OpenDoor] = {}

    def address(self, migration_uid: str) -> TunnelAddress | None:
        door = self._open.get(migration_uid)
        return None if door is None else door.door

    def open_for(self, vmi_uid: str) -> frozenset[str]:
        return frozenset(uid for uid, one in self._open.items() if one.vmi_uid == vmi_uid)

    async def open(self, vmi_uid: str, moving: MigrationState) -> None:
        """Find the source's certificate, and listen. Raises ApiError."""
        result: Any = await Call(
            "open a door for",
            "Node",
            Key("", moving.source_node),
            lambda: self._fabric.listen(vmi_uid, moving, self._node),
        )
        self._open[moving.migration_uid] = result

    async def close(self, migration_uid: str) -> None:
        door = self._open.pop(migration_uid, None)
        if door is None:
            return
        with suppress(ApiError):
            await Call(SHUT, "Node", Key("", door.moving.source_node), lambda: self._fabric.shut(door))
        self._fabric.shut(door)

    def end(self) -> None:
        """End the process."""
        for door in self._fabric.doors:
            if door.node is self._node:
                door.is_open = False
        self._fabric.doors = [door for door in self._fabric.doors if door.is_open]
        self._open.clear()
