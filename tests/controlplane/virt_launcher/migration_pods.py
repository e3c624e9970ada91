# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two launchers with a guest in one of them, and virt-handler's tunnel between them, without a cluster.

The test opens the launchers' sockets, as the two virt-nodes do. A relay (rpc_relay.py) sits between the client and each
libvirtd, and a valve can hold up the memory.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from unittest.mock import patch

from controlplane.domain import layout
from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.migration import Options, migrate
from controlplane.links.handler import server_name
from controlplane.virt_handler.migration import tunnel_client as tunnel_client_module
from controlplane.virt_handler.migration.handshake import Channel
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket
from tests.controlplane.virt_handler.migration.ends import BINDING, SOURCE, TARGET, listen_at, pair_of
from tests.controlplane.virt_launcher.launched import PLAN, UID, boot, connect, domain
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod
from tests.controlplane.virt_launcher.rpc_relay import Relay

DISKS = ("vda", "vdb", "sda")
POD_UID, EPOCH = "target-pod", 2
CHECKS = """#!/bin/sh
for disk in vda sda; do dd if=/dev/urandom of=/dev/$disk bs=64k seek=8 count=16 2>/dev/null; done
sync
while :; do
    echo 3 >/proc/sys/vm/drop_caches
    for disk in vda sda; do echo "on $disk: $(dd if=/dev/$disk bs=64k skip=8 count=16 2>/dev/null | sha256sum)"; done
    for cpu in /sys/devices/system/cpu/cpu*/online; do echo 1 >$cpu; done 2>/dev/null
    echo "with $(grep -c ^processor /proc/cpuinfo) CPUs"
    sleep 1
done
"""
"""Writes on its disks, and prints their checksums and its number of CPUs for ever. It brings new CPUs online."""
BUSY = """#!/bin/sh
mkdir /busy && mount -t tmpfs none /busy
for name in a b; do dd if=/dev/urandom of=/busy/$name bs=1M count=16; done
echo busy
while :; do cp /busy/a /busy/c; cp /busy/b /busy/c; done
"""
"""Writes 16 MiB of its memory again and again."""
SOME_BYTES = 8 << 20
"""Part of a guest's memory: much of it is sent, and most of it is not."""


States = tuple[State | None, State | None]


class Valve:
    """Dials the target's launcher, and limits how much guest memory passes."""

    def __init__(self, pod: LauncherPod) -> None:
        self._pod = pod
        self._pumps: set[asyncio.Task[None]] = set()
        self._connections: list[socket.socket] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.is_full = asyncio.Event()
        """Set when the limit of a closed valve is reached."""

    async def dial(self, channel: Channel) -> socket.socket:
        if channel == "control":
            return await dial_socket(str(self._pod.socket))
        there = await dial_socket(str(self._pod.run.joinpath(*layout.MIGRATION_SOCKETS[channel])))
        if channel == "disks":
            return there
        near, far = socket.socketpair()
        for end in (near, far):
            end.setblocking(False)
        self._connections += [far, there]
        for way in ((far, there), (there, far)):
            self._pumps.add(asyncio.create_task(self._pump(*way)))
        return near

    def cut(self) -> None:
        """Break the memory connection."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        for task in self._pumps:
            task.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        for connection in self._connections:
            connection.close()

    async def _pump(self, source: socket.socket, target: socket.socket) -> None:
        loop, passed = asyncio.get_running_loop(), 0
        with suppress(OSError):
            while data := await loop.sock_recv(source, 1 << 16):
                await loop.sock_sendall(target, data)
                passed += len(data)
                if passed >= SOME_BYTES and not self.is_open.is_set():
                    self.is_full.set()
                    await self.is_open.wait()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclasses.dataclass
class Migration:
    """A guest at its source, and everything that its migration needs."""

    source: LauncherPod
    target: LauncherPod
    at_source: Connection
    """Connections of an observer, not of the migrating client."""
    at_target: Connection
    relays: dict[str, Relay]
    """Relays of the migrating client, by libvirtd: source, target."""
    valve: Valve
    connections: list[Connection] = dataclasses.field(default_factory=list)

    async def dial(self) -> tuple[Domain, Connection]:
        """Connect as a migrating client. Return the guest at its source, and the target's libvirtd."""
        source, target = [await self._dial(relay) for relay in self.relays.values()]
        guest = await source.guest(UID)
        assert guest is not None
        return guest, target

    async def send(self, *, is_still: bool = False) -> Domain:
        """Send the guest as a new client. Its connections close if the migration fails."""
        guest, target = await self.dial()
        options = Options(
            pod_uid=POD_UID,
            epoch=EPOCH,
            memory_socket=layout.migration_socket("memory"),
            disks_socket=layout.migration_socket("disks"),
            disks=DISKS,
            is_still=is_still,
        )
        try:
            return await migrate(guest, target, options)
        except HypervisorError:
            await self.hang_up()
            raise

    async def hang_up(self) -> None:
        """Close the connections of the migrating client."""
        while self.connections:
            with suppress(HypervisorError):
                await self.connections.pop().close()

    async def _dial(self, relay: Relay) -> Connection:
        deadline = time.monotonic() + 10
        while True:
            try:
                connection = await open_connection(socket_uri(str(relay.path)))
            except HypervisorError:  # the previous connection may not be released yet, and only one is allowed
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)
            else:
                self.connections.append(connection)
                return connection

    async def states(self) -> States:
        """Return the guest's state at its source and at its target; None without a domain."""
        return await _state(self.at_source), await _state(self.at_target)

    async def until_source(self, life: Life) -> None:
        await self._until(lambda states: states[0] is not None and states[0].life is life, life.value)

    async def until_target(self, state: State | None) -> None:
        await self._until(lambda states: states[1] == state, str(state))

    async def until_given_up(self) -> None:
        """Wait until the source's libvirt has ended the migration."""
        guest = await self.at_source.guest(UID)
        assert guest is not None
        deadline = time.monotonic() + 240
        while (await guest.progress()).total:
            assert time.monotonic() < deadline, self.source.log
            await asyncio.sleep(0.02)

    async def _until(self, is_right: Callable[[States], bool], wanted: str) -> None:
        """Poll libvirt, which does not send an event for every change."""
        deadline = time.monotonic() + 240
        while not is_right(states := await self.states()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{states} and not {wanted}\n{self.source.log}\n{self.target.log}")
            await asyncio.sleep(0.02)

    def qemus(self) -> tuple[int, int]:
        return len(self.source.pids("qemu-system-x86_64")), len(self.target.pids("qemu-system-x86_64"))


async def _state(connection: Connection) -> State | None:
    with suppress(HypervisorError):  # it may disappear meanwhile
        guest = await connection.guest(UID)
        return None if guest is None else await guest.state()
    return None


@asynccontextmanager
async def migration_pods(
    images: Images,
    home: pathlib.Path,
    script: str = CHECKS,
    data_bytes: int = 1 << 30,
    memory: dict[str, str] | None = None,
) -> AsyncIterator[Migration]:
    """Boot a guest that runs a script. Prepare its target and the tunnel.

    data_bytes: size of its empty disk. memory: as in a spec, other than the default.
    """
    pods = [_begin(images, home / name, script, data_bytes) for name in ("source", "target")]
    closing: list[Connection] = []
    relays: dict[str, Relay] = {}
    try:
        source, target = pods
        at_source, at_target = [await connect(pod) for pod in pods]
        closing += [at_source, at_target]
        target.make_network("10.0.2.1/24")
        await boot(source, at_source, domain(source, memory=memory) if memory else "")
        valve = Valve(target)
        server = TunnelServer(BINDING, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der), valve.dial)
        context = client_tls_context(pair_of(SOURCE), pair_of(TARGET).der)
        client = TunnelClient(
            BINDING, Target("127.0.0.1", await server.open("127.0.0.1"), context, server_name(TARGET)), str(home)
        )
        with patch.object(tunnel_client_module, "CALLS", 100):  # the tests migrate a dozen times
            control = await client.open({"memory": _listen(source, "memory"), "disks": _listen(source, "disks")})
        relays |= {
            "source": Relay(home / "source.sock", source.socket),
            "target": Relay(home / "target.sock", pathlib.Path(control)),
        }
        for relay in relays.values():
            await relay.open()
        migration = Migration(source, target, at_source, at_target, relays, valve)
        try:
            yield migration
        finally:
            await migration.hang_up()
            await client.close()
            await server.close()
            await valve.close()
    finally:
        for connection in closing:
            with suppress(HypervisorError):
                await connection.close()
        for relay in relays.values():
            await relay.close()
        for pod in pods:
            pod.remove()


def _begin(images: Images, home: pathlib.Path, script: str, data_bytes: int) -> LauncherPod:
    home.mkdir()
    (seed,) = PLAN.cloud_init
    (data,) = PLAN.empty_disks
    plan = dataclasses.replace(
        PLAN,
        cloud_init=(dataclasses.replace(seed, user_data=script),),
        empty_disks=(dataclasses.replace(data, capacity_bytes=data_bytes),),
    )
    pod = LauncherPod(home, images, plan, {layout.image_mount("root"): images.guest})
    pod.start()
    return pod


def _listen(pod: LauncherPod, channel: str) -> socket.socket:
    path = pod.run.joinpath(*layout.MIGRATION_SOCKETS[channel])
    server = listen_at(path)
    os.chown(path, layout.UID, layout.UID)
    return server
