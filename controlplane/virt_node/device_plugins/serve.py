# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registers a plugin with the kubelet, and again whenever the kubelet has dropped it.

A plugin is registered while the kubelet has its ListAndWatch stream open. The stream ends when the kubelet restarts,
and also without a restart: the kubelet keeps its clients by resource name, so when a previous process for the same
resource ends, it disconnects the current one and marks all devices unhealthy until the next registration.

A starting kubelet removes all sockets from the directory and creates its own again. inotify waits for that.
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
"""A kubelet opens the stream right after its reply to the registration, or before."""

_SETTLED_SECONDS = 10.0
"""A registration that lasted this long resets the pauses; a shorter one makes them longer."""

_PAUSES_SECONDS = (0.2, 1.0, 2.0, 5.0, 10.0)
"""Pauses before retries, also before the first: a kubelet that has just dropped a resource may drop its next client.
"""

_Identity = tuple[int, int, int] | None


class RecordRegistration(Protocol):
    """Records whether a resource is registered with the kubelet."""

    async def __call__(self, resource: str, *, is_registered: bool) -> None: ...


async def serve(plugin: Plugin, directory: Path, inotify: Inotify, record: RecordRegistration) -> None:
    """Serve until cancelled.

    It retries after failures (no inotify watch left, no space for a socket): they are temporary, and must not end other
    plugins.
    """
    failures, resource = 0, plugin.device.resource
    while True:
        kubelet = None
        try:
            kubelet = await _kubelet_socket(directory, inotify)
            async with listening(plugin, directory) as (service, name):
                await _register(directory, name, resource)
                await _wait_for_stream(service)
                if await _wait_until_dropped(service, resource, record) >= _SETTLED_SECONDS:
                    failures = 0
                log.warning("the kubelet dropped a device plugin", extra={"resource": resource})
        except (OSError, GRPCError, StreamTerminatedError) as error:
            log.warning(
                "the kubelet did not register a device plugin", extra={"resource": resource, "error": str(error)}
            )
        await _pause(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)], directory, inotify, kubelet)
        failures += 1


async def _wait_for_stream(service: Service) -> None:
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            await service.opened.wait()
    except TimeoutError:
        raise TimeoutError("the kubelet accepted the registration, but did not list the devices") from None


async def _wait_until_dropped(service: Service, resource: str, record: RecordRegistration) -> float:
    """Wait until the kubelet ends its stream; return the seconds that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    log.info("device plugin registered", extra={"resource": resource})
    await record(resource, is_registered=True)
    try:
        await service.ended.wait()
    finally:
        await record(resource, is_registered=False)
    return loop.time() - began


async def _register(directory: Path, name: str, resource: str) -> None:
    channel = Channel(path=str(directory / KUBELET_SOCKET), codec=BytesCodec())
    try:
        register = UnaryUnaryMethod[bytes, bytes](channel, "/v1beta1.Registration/Register", bytes, bytes)
        await register(wire.register_request(name, resource), timeout=_REGISTER_SECONDS)
    finally:
        channel.close()


async def _pause(seconds: float, directory: Path, inotify: Inotify, previous: _Identity) -> None:
    """Wait, but stop when the kubelet has restarted."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            try:
                await _kubelet_restart(directory, inotify, previous)
            except OSError:  # no inotify watch is left
                await asyncio.sleep(seconds)


async def _kubelet_socket(directory: Path, inotify: Inotify) -> _Identity:
    def look() -> _Identity:
        current = _identity(directory / KUBELET_SOCKET)
        if current is None:
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))
        return current

    return await inotify.wait_for(look)


async def _kubelet_restart(directory: Path, inotify: Inotify, previous: _Identity) -> None:
    """Wait until the kubelet's socket differs from the previous one."""

    def look() -> None:
        current = _identity(directory / KUBELET_SOCKET)
        if current is None or current == previous:
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))

    await inotify.wait_for(look)


def _identity(path: Path) -> _Identity:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns
