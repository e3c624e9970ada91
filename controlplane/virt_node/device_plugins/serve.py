# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Register a plugin with the kubelet, again whenever the kubelet has dropped it.

Being registered is the kubelet's open list of our devices, and nothing else: a kubelet that restarts ends it, and so
does one that goes on. It keeps its clients by the resource's name, so when a predecessor ends that served the same
resource, it disconnects whoever has the name by then, and calls all devices unhealthy until somebody registers.

A starting kubelet removes all sockets from the directory and makes its own anew. That is waited for by inotify.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, StreamTerminatedError

from controlplane.virt_node.device_plugins import wire
from controlplane.virt_node.device_plugins.endpoint import listening
from controlplane.virt_node.device_plugins.plugin import BytesCodec, Plugin, Service
from controlplane.virt_node.inotify import Inotify, NotYet

log = logging.getLogger(__name__)

KUBELET_SOCKET = "kubelet.sock"
_REGISTER_SECONDS = 5.0
_LIST_SECONDS = 5.0
"""A kubelet asks for the list of devices as soon as it has answered, or before."""

_SETTLED_SECONDS = 10.0
"""A registration that held for as long was a success; one that did not makes the pauses longer."""

_PAUSES_SECONDS = (0.2, 1.0, 2.0, 5.0, 10.0)
"""The first is needed, too: a kubelet that has just dropped a resource may drop its next client along with it."""

_Identity = tuple[int, int, int] | None


class Tell(Protocol):
    """Is told of a resource that the kubelet has taken, and that it has dropped it."""

    async def __call__(self, resource: str, *, is_registered: bool) -> None: ...


async def serve(plugin: Plugin, directory: Path, inotify: Inotify, tell: Tell) -> None:
    """Serve until cancelled.

    Whatever fails on the way (no inotify watch left, no room for a socket) is tried again: it passes, and other
    devices do not have to go with this one.
    """
    failures, resource = 0, plugin.device.resource
    while True:
        kubelet = None
        try:
            kubelet = await _kubelet_socket(directory, inotify)
            async with listening(plugin, directory) as (service, name):
                await _register(directory, name, resource)
                await _list_opened(service)
                if await _hold(service, resource, tell) >= _SETTLED_SECONDS:
                    failures = 0
                log.warning("the kubelet dropped a device plugin", extra={"resource": resource})
        except (OSError, GRPCError, StreamTerminatedError) as error:
            log.warning(
                "the kubelet did not register a device plugin", extra={"resource": resource, "error": str(error)}
            )
        await _pause(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)], directory, inotify, kubelet)
        failures += 1


async def _list_opened(service: Service) -> None:
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            await service.opened.wait()
    except TimeoutError:
        raise TimeoutError("it took the registration, and never asked for the devices") from None


async def _hold(service: Service, resource: str, tell: Tell) -> float:
    """Return when the kubelet has ended its list; after how many seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    log.info("device plugin registered", extra={"resource": resource})
    await tell(resource, is_registered=True)
    try:
        await service.ended.wait()
    finally:
        await tell(resource, is_registered=False)
    return loop.time() - began


async def _register(directory: Path, name: str, resource: str) -> None:
    channel = Channel(path=str(directory / KUBELET_SOCKET), codec=BytesCodec())
    try:
        register = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.Registration/Register", bytes, bytes)
        await register(wire.register_request(name, resource), timeout=_REGISTER_SECONDS)
    finally:
        channel.close()


async def _pause(seconds: float, directory: Path, inotify: Inotify, known: _Identity) -> None:
    """Wait, but not when a kubelet has started since."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            try:
                await _kubelet_restart(directory, inotify, known)
            except OSError:  # no inotify watch is left
                await asyncio.sleep(seconds)


async def _kubelet_socket(directory: Path, inotify: Inotify) -> _Identity:
    def look() -> _Identity:
        found = _identity(directory / KUBELET_SOCKET)
        if found is None:
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))
        return found

    return await inotify.wait_for(look)


async def _kubelet_restart(directory: Path, inotify: Inotify, known: _Identity) -> None:
    """Return when the kubelet's socket is another one than the known one."""

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
