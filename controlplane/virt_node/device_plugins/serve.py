# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve a plugin on a socket in the kubelet's directory and register it; once more whenever the kubelet restarts.

A starting kubelet removes all sockets from the directory and makes its own anew. That is waited for by inotify.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Server

from controlplane.virt_node.device_plugins import wire
from controlplane.virt_node.device_plugins.plugin import BytesCodec, Plugin
from controlplane.virt_node.inotify import Inotify, NotYet

log = logging.getLogger(__name__)

KUBELET_SOCKET = "kubelet.sock"
_REGISTER_SECONDS = 5.0
_PAUSES_SECONDS = (0.2, 1.0, 2.0, 5.0, 10.0)
_Identity = tuple[int, int, int] | None


async def serve(
    plugin: Plugin, directory: Path, inotify: Inotify, registered: Callable[[str], Awaitable[None]]
) -> None:
    """Serve until cancelled; `registered` is told the resource's name after every registration.

    Whatever fails on the way (no inotify watch left, no room for a socket) is tried again: it passes, and other
    devices do not have to go with this one.
    """
    failures = 0
    while True:
        try:
            kubelet = await _kubelet_socket(directory, inotify)
            async with _listening(plugin, directory):
                await _register(plugin, directory)
                failures = 0
                log.info("device plugin registered", extra={"resource": plugin.device.resource})
                await registered(plugin.device.resource)
                await _kubelet_restart(directory, inotify, kubelet)
        except (OSError, GRPCError, StreamTerminatedError, TimeoutError) as error:
            log.warning(
                "the kubelet did not register a device plugin",
                extra={"resource": plugin.device.resource, "error": str(error)},
            )
            await asyncio.sleep(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)])
            failures += 1


def socket_name(plugin: Plugin) -> str:
    """Return the socket's name; a name of its own, so that upstream's plugins on the same node are not disturbed."""
    return f"virtops-{plugin.device.name}.sock"


@asynccontextmanager
async def _listening(plugin: Plugin, directory: Path) -> AsyncIterator[None]:
    path = directory / socket_name(plugin)
    path.unlink(missing_ok=True)  # of a predecessor that was killed
    server = Server([plugin], codec=BytesCodec())
    await server.start(path=str(path))
    try:
        yield
    finally:
        server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await server.wait_closed()


async def _register(plugin: Plugin, directory: Path) -> None:
    channel = Channel(path=str(directory / KUBELET_SOCKET), codec=BytesCodec())
    try:
        register = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.Registration/Register", bytes, bytes)
        await register(wire.register_request(socket_name(plugin), plugin.device.resource), timeout=_REGISTER_SECONDS)
    finally:
        channel.close()


async def _kubelet_socket(directory: Path, inotify: Inotify) -> _Identity:
    def look() -> _Identity:
        found = _identity(directory / KUBELET_SOCKET)
        if found is None:
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))
        return found

    return await inotify.wait_for(look)


async def _kubelet_restart(directory: Path, inotify: Inotify, known: _Identity) -> None:
    """Return when the kubelet's socket is another one than the known one; our own is gone by then, too."""

    def look() -> None:
        found = _identity(directory / KUBELET_SOCKET)
        if found is None or found == known:
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))

    await inotify.wait_for(look)


def _identity(path: Path) -> _Identity:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
