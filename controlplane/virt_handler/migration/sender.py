# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a guest to the target of its migration: the source's side, from the tunnel to resuming the guest.

The result is that QEMU at the source has ended, or a failure. libvirt sends the guest; convergence.py watches the
progress and the timeouts meanwhile.
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
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.migration import Options, migrate
from controlplane.hypervisor.progress import Progress
from controlplane.links.handler import server_name
from controlplane.links.node.messages import MigrationChannel
from controlplane.process.loop_thread import LoopThread
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.launchers.ports import Failed, Node, TransferRequest
from controlplane.virt_handler.migration.convergence import Watch
from controlplane.virt_handler.migration.handshake import Channel, migration_identity
from controlplane.virt_handler.migration.network import has_network
from controlplane.virt_handler.migration.peer import client_tls_context, peer_certificate
from controlplane.virt_handler.migration.source_exit import SourceExit
from controlplane.virt_handler.migration.target_address import address_of
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.vmi.migration_source import is_migrated

log = logging.getLogger(__name__)

ABORTED = "Live migration has been aborted: it {}"
GONE_SECONDS = 60.0
"""Timeout of QEMU's end, and of an abort in libvirt. They usually take 0.1 s and 1 s."""
CUT_SECONDS = 10.0
"""How long to wait for libvirt's call to end after the connection to the target is closed."""
LEFT = State(Life.PAUSED, "migration")
"""The state of the domain at the source when all of the guest is sent."""
Progressed = Callable[[Key, Progress | None], None]
"""Called with the progress of a VMI's migration after each read; None: the migration is over."""


def _ignore_progress(_unused: Key, __: Progress | None) -> None:
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
        progressed: Progressed = _ignore_progress,
        has_network: Callable[[], bool] = has_network,
    ) -> None:
        """directory: for sockets that no other process sees. has_network: whether there is a migration network."""
        self._pair = pair
        self._node = node
        self._api = api
        self._clock = clock
        self._directory = directory
        self._progressed = progressed
        self._has_network = has_network

    async def send(self, request: TransferRequest) -> None:
        """Send a guest. Returns when QEMU at the source has ended."""
        migration = request.moving
        tunnel = TunnelClient(migration_identity(migration), await self._target(migration), self._directory)
        thread = LoopThread("migration")
        try:
            path = await thread.run(tunnel.open(await self._listen(request.pod_uid)))
            target = await _reach(path, request)
            try:
                await self._send(request, target)
            finally:
                with suppress(HypervisorError):
                    await target.close()
        finally:
            tunnel.cut()
            try:
                await thread.run(tunnel.close())
            finally:
                thread.end()

    async def _target(self, migration: MigrationState) -> Target:
        ports = list(migration.target_direct_migration_node_ports)
        if len(ports) != 1 or not (ports[0].isascii() and ports[0].isdecimal()):
            raise Failed("the target has not published its port")
        source, target = [
            await self._api.get(NODE, Key("", node)) for node in (migration.source_node, migration.target_node)
        ]
        address = address_of(migration, source, target, has_network=self._has_network())
        context = client_tls_context(self._pair, peer_certificate(target, migration.target_node))
        return Target(address, int(ports[0]), context, server_name(migration.target_node))

    async def _listen(self, pod_uid: str) -> dict[Channel, socket]:
        sockets: dict[Channel, socket] = {}
        channels: tuple[MigrationChannel, ...] = ("memory", "disks")
        try:
            for channel in channels:
                sockets[channel] = await self._node.listen_for_migration(pod_uid, channel)
        except BaseException:
            for listener in sockets.values():
                listener.close()
            raise
        return sockets

    async def _send(self, request: TransferRequest, target: Connection) -> None:
        guest = request.guest
        if not isinstance(guest, Domain):
            raise Failed("the guest is not a libvirt domain")
        key = Key(request.vmi.metadata.namespace, request.vmi.metadata.name)
        settings = request.moving.migration_configuration or MigrationConfiguration()
        watch = Watch(
            guest,
            settings,
            self._clock,
            request.writes.stop,
            is_paused_by_user=request.is_paused_by_user,
            spare=spare_bytes(request.vmi.spec.domain, request.vmi.status.memory),
            most=most_to_send(request.vmi),
            progressed=partial(self._progressed, key),
        )
        source_exit = SourceExit(self._node, request.pod_uid, guest.name, target)
        early_resume = asyncio.create_task(_resume_early(source_exit, request))
        try:
            moved = await _migrate(
                guest, target, _options(request, settings), watch, source_exit, unwanted=request.unwanted
            )
            if moved is None:
                await early_resume
                return
            await self._until_gone(guest)
        except (Failed, HypervisorError):
            await watch.let_go_on()
            raise
        finally:
            early_resume.cancel()
            self._progressed(key, None)
        if not request.is_paused_by_user:
            await _resume_at_target(moved)

    async def _until_gone(self, guest: Domain) -> None:
        """Wait until QEMU at the source has ended: the guest must not run at the target before. Failed.

        If the domain runs, it was resumed after the transfer (a resume waits in libvirtd for the end of the job): the
        target has an outdated copy. If libvirt left the domain paused, because the target's confirmation was lost, the
        guest continues at the source: the target may be dead, and destroying the source would lose the guest.
        """
        deadline = self._clock.monotonic() + GONE_SECONDS
        while not is_migrated(state := await guest.state()):
            if not state.life.is_up:
                return
            if self._clock.monotonic() > deadline:
                raise Failed("the guest has left the source, but its QEMU there does not end")
            if state.life is Life.RUNNING:
                raise Failed("the guest was resumed before its QEMU had ended")
            if state == LEFT:
                raise Failed("the target did not confirm that it has the whole guest")
            await asyncio.sleep(0.1)


async def _reach(path: str, request: TransferRequest) -> Connection:
    """Connect to the target's libvirtd, and meanwhile write that the migration begins. Both succeed, or it raises."""
    opening = asyncio.create_task(open_connection(socket_uri(path)))
    try:
        await request.writes.begin()
    except BaseException:
        opening.cancel()
        with suppress(HypervisorError, asyncio.CancelledError):
            await (await opening).close()
        raise
    return await opening


async def _resume_early(source_exit: SourceExit, request: TransferRequest) -> None:
    """Resume the guest at the target as soon as it has left the source, and report it before libvirt does."""
    await source_exit.watch()
    if source_exit.there is None:
        return
    if not request.is_paused_by_user:
        await _resume_at_target(source_exit.there)
    request.left()


async def _migrate(
    guest: Domain,
    target: Connection,
    options: Options,
    watch: Watch,
    source_exit: SourceExit,
    *,
    unwanted: asyncio.Event,
) -> Domain | None:
    """Send the guest with libvirt. Return the guest at the target; None if SourceExit has detected its exit. Failed.

    It ends even if libvirtd at either side does not respond: a tenant may control it.
    """
    work = asyncio.create_task(migrate(guest, target, options))
    watching, cancelling = asyncio.create_task(watch.run()), asyncio.create_task(unwanted.wait())
    try:
        await asyncio.wait((work, watching, cancelling), return_when=asyncio.FIRST_COMPLETED)
        abort_reason = watching.result() if watching.done() else ""
        if not work.done():
            await _abort(guest)
            await asyncio.wait((work,), timeout=GONE_SECONDS)
        if not work.done():
            await target.close()  # this ends the call, even if the target's libvirtd hangs
            await asyncio.wait((work,), timeout=CUT_SECONDS)
        if not work.done():
            guest.cut()  # the source's own libvirtd does not end the call
        if source_exit.there is None:
            return await _result_of(work, abort_reason)
        if work.done() and (error := work.exception()) is not None:
            log.warning("a guest has moved, but libvirt does not report it", extra={"error": str(error)})
        return None
    finally:
        watching.cancel()
        cancelling.cancel()
        work.cancel()


async def _result_of(work: asyncio.Task[Domain], why: str) -> Domain:
    try:
        return await work
    except HypervisorError as error:
        raise Failed(ABORTED.format(why) if why else str(error)) from error


async def _abort(guest: Domain) -> None:
    with suppress(HypervisorError):
        await guest.abort_job()


async def _resume_at_target(guest_at_target: Domain) -> None:
    """Resume the guest at the target. If that fails, the target's virt-handler resumes it after the commit."""
    try:
        await guest_at_target.resume()
    except HypervisorError as error:
        log.warning("cannot resume a guest at its target", extra={"domain": guest_at_target.name, "error": str(error)})


def _options(request: TransferRequest, settings: MigrationConfiguration) -> Options:
    migration, vmi = request.moving, request.vmi
    names = device_names(vmi)
    return Options(
        pod_uid=migration.target_pod_uid,
        epoch=vmi.status.epoch + 1,
        memory_socket=layout.migration_socket("memory"),
        disks_socket=layout.migration_socket("disks"),
        disks=tuple(names[disk] for disk in sent_disks(vmi) if disk in names),
        bytes_per_second=quantity.to_bytes(settings.bandwidth_per_migration),
        auto_converge=settings.allow_auto_converge,
        is_still=request.is_still,
    )
