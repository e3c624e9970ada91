# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a guest to the target of its migration: the source's part, from the tunnel to the guest that goes on there.

What comes back is that QEMU here is gone for good, or a failure. In between libvirt decides; while it works its
progress is looked at, and what is to be done about one that does not get on, or is not done in its time (converge).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from socket import socket

from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import spare_bytes
from controlplane.api.objects.migration_state import MigrationConfiguration, MigrationState
from controlplane.api.objects.resources import NODE, Key
from controlplane.domain import layout
from controlplane.domain.builders.disk import device_names
from controlplane.domain.migratable import most_to_send, sent_disks
from controlplane.domain.state import Life, State
from controlplane.engine.ports import Api, Clock
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.guest import Guest, Progress
from controlplane.hypervisor.migration import Options, migrate
from controlplane.links.node.messages import MigrationChannel
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.launchers.ports import Failed, Node, TransferRequest
from controlplane.virt_handler.migration.convergence import Watch
from controlplane.virt_handler.migration.copy_thread import CopyThread
from controlplane.virt_handler.migration.handshake import Channel, migration_identity
from controlplane.virt_handler.migration.network import has_network
from controlplane.virt_handler.migration.peer import certificate_host, client_tls_context, peer_certificate
from controlplane.virt_handler.migration.source_exit import SourceExit
from controlplane.virt_handler.migration.target_address import address_of
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.vmi.migration_source import is_migrated

log = logging.getLogger(__name__)

ABORTED = "Live migration has been aborted: it {}"
GONE_SECONDS = 60.0
"""QEMU takes a tenth of a second to end once its guest has left; and libvirt one to end what is given up."""
CUT_SECONDS = 10.0
"""For a call to end after that to the target was cut."""
LEFT = State(Life.PAUSED, "migration")
"""At the source, when all has been sent."""
Progressed = Callable[[Key, Progress | None], None]
"""Told how far the migration of an instance is, each time that it was looked at; None: it is over."""


def _tell_nobody(_unused: Key, __: Progress | None) -> None:
    return None


class Sender:
    """Implements launchers.ports.Send."""

    def __init__(
        self,
        pair: SelfSignedPair,
        node: Node,
        api: Api,
        clock: Clock,
        *,
        directory: str,
        progressed: Progressed = _tell_nobody,
        has_network: Callable[[], bool] = has_network,
    ) -> None:
        """directory: where sockets may be made that nobody else sees. has_network: migrations have one of their own."""
        self._pair = pair
        self._node = node
        self._api = api
        self._clock = clock
        self._directory = directory
        self._progressed = progressed
        self._has_network = has_network

    async def send(self, order: TransferRequest) -> None:
        """Send a guest; it returns when QEMU here is gone for good."""
        moving = order.moving
        passage = TunnelClient(migration_identity(moving), await self._target(moving), self._directory)
        lane = CopyThread()
        try:
            path = await lane.run(passage.open(await self._listen(order.pod_uid)))
            target = await _reach(path, order)
            try:
                await self._send(order, target)
            finally:
                with suppress(HypervisorError):
                    await target.close()
        finally:
            passage.cut()
            try:
                await lane.run(passage.close())
            finally:
                lane.end()

    async def _target(self, moving: MigrationState) -> Target:
        ports = list(moving.target_direct_migration_node_ports)
        if len(ports) != 1 or not (ports[0].isascii() and ports[0].isdecimal()):
            raise Failed("the target has not said on which port it listens")
        source, target = [await self._api.get(NODE, Key("", one)) for one in (moving.source_node, moving.target_node)]
        address = address_of(moving, source, target, has_network=self._has_network())
        context = client_tls_context(self._pair, peer_certificate(target, moving.target_node))
        return Target(address, int(ports[0]), context, certificate_host(moving.target_node))

    async def _listen(self, pod_uid: str) -> dict[Channel, socket]:
        made: dict[Channel, socket] = {}
        channels: tuple[MigrationChannel, ...] = ("memory", "disks")
        try:
            for channel in channels:
                made[channel] = await self._node.listen_for_migration(pod_uid, channel)
        except BaseException:
            for one in made.values():
                one.close()
            raise
        return made

    async def _send(self, order: TransferRequest, target: Connection) -> None:
        guest = order.guest
        if not isinstance(guest, Guest):
            raise Failed("the guest is none of libvirt's")
        key = Key(order.vmi.metadata.namespace, order.vmi.metadata.name)
        settings = order.moving.migration_configuration or MigrationConfiguration()
        watch = Watch(
            guest,
            settings,
            self._clock,
            order.writes.stop,
            is_paused_by_user=order.is_paused_by_user,
            spare=spare_bytes(order.vmi.spec.domain, order.vmi.status.memory),
            most=most_to_send(order.vmi),
            progressed=partial(self._progressed, key),
        )
        departure = SourceExit(self._node, order.pod_uid, guest.name, target)
        ahead = asyncio.create_task(_go_ahead(departure, order))
        try:
            there = await _migrate(guest, target, _options(order, settings), watch, departure, unwanted=order.unwanted)
            if there is None:
                await ahead
                return
            await self._until_gone(guest)
        except (Failed, HypervisorError):
            await watch.let_go_on()
            raise
        finally:
            ahead.cancel()
            self._progressed(key, None)
        if not order.is_paused_by_user:
            await _let_go_on(there)

    async def _until_gone(self, guest: Guest) -> None:
        """Wait until QEMU here has ended: the guest must not go on at the target before. Failed.

        One that runs was let go on meanwhile (a resume waits in libvirtd for the end of the job), and what it has done
        since is nowhere else. One that libvirt here has left paused, as it did not hear the last word, goes on here:
        to end it would leave the guest to a target that may be dead, with no more said than that it was ended.
        """
        until = self._clock.monotonic() + GONE_SECONDS
        while not is_migrated(state := await guest.state()):
            if not state.life.is_up:
                return
            if self._clock.monotonic() > until:
                raise Failed("the guest has left, but its QEMU does not end")
            if state.life is Life.RUNNING:
                raise Failed("the guest was let go on before its QEMU had ended")
            if state == LEFT:
                raise Failed("the source did not hear that the target has all of the guest")
            await asyncio.sleep(0.1)


async def _reach(path: str, order: TransferRequest) -> Connection:
    """Connect to the target's libvirtd, and have it written meanwhile that the migration begins: both, or neither."""
    opening = asyncio.create_task(open_connection(socket_uri(path)))
    try:
        await order.writes.begin()
    except BaseException:
        opening.cancel()
        with suppress(HypervisorError, asyncio.CancelledError):
            await (await opening).close()
        raise
    return await opening


async def _go_ahead(departure: SourceExit, order: TransferRequest) -> None:
    """Have the guest go on at the target as soon as it has left, and say so, ahead of libvirt's word of it."""
    await departure.watch()
    if departure.there is None:
        return
    if not order.is_paused_by_user:
        await _let_go_on(departure.there)
    order.left()


async def _migrate(
    guest: Guest, target: Connection, options: Options, watch: Watch, departure: SourceExit, *, unwanted: asyncio.Event
) -> Guest | None:
    """Have libvirt send it, and look to its end; return it, or None when it has left already, whatever libvirt says.

    Failed. It has an end whatever libvirt says at either side: a tenant may have taken that over.
    """
    work = asyncio.create_task(migrate(guest, target, options))
    looking, dropped = asyncio.create_task(watch.run()), asyncio.create_task(unwanted.wait())
    try:
        await asyncio.wait((work, looking, dropped), return_when=asyncio.FIRST_COMPLETED)
        why = looking.result() if looking.done() else ""
        if not work.done():
            await _give_up(guest)
            await asyncio.wait((work,), timeout=GONE_SECONDS)
        if not work.done():
            await target.close()  # which ends the call, whatever libvirt there does
            await asyncio.wait((work,), timeout=CUT_SECONDS)
        if not work.done():
            guest.cut()  # it is this side that does not end it
        if departure.there is None:
            return await _come_to(work, why)
        if work.done() and (error := work.exception()) is not None:
            log.warning("a guest has moved, though libvirt does not say so", extra={"error": str(error)})
        return None
    finally:
        looking.cancel()
        dropped.cancel()
        work.cancel()


async def _come_to(work: asyncio.Task[Guest], why: str) -> Guest:
    try:
        return await work
    except HypervisorError as error:
        raise Failed(ABORTED.format(why) if why else str(error)) from error


async def _give_up(guest: Guest) -> None:
    with suppress(HypervisorError):
        await guest.abort_job()


async def _let_go_on(there: Guest) -> None:
    """Have the guest go on at the target; where that fails, the target's virt-handler does so after the commit."""
    try:
        await there.resume()
    except HypervisorError as error:
        log.warning("a guest that has moved is yet to go on", extra={"domain": there.name, "error": str(error)})


def _options(order: TransferRequest, settings: MigrationConfiguration) -> Options:
    moving, vmi = order.moving, order.vmi
    names = device_names(vmi)
    return Options(
        pod_uid=moving.target_pod_uid,
        epoch=vmi.status.epoch + 1,
        memory_socket=layout.migration_socket("memory"),
        disks_socket=layout.migration_socket("disks"),
        disks=tuple(names[one] for one in sent_disks(vmi) if one in names),
        bytes_per_second=quantity.to_bytes(settings.bandwidth_per_migration),
        auto_converge=settings.allow_auto_converge,
        is_still=order.is_still,
    )
