# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin's socket in the kubelet's directory, and removal of stale ones. No registration.

A new process starts while the previous one still serves. So every socket has a unique name. Another process removes a
socket only if no process listens on it.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from grpclib.server import Server

from controlplane.virt_node.device_plugins.plugin import BytesCodec, Plugin, Service

_CLOSING_SECONDS = 1.0


@asynccontextmanager
async def listening(plugin: Plugin, directory: Path) -> AsyncIterator[tuple[Service, str]]:
    """Serve the plugin; yields its service and its socket's name in the directory."""
    # "virtops": does not collide with upstream's plugins on the same node.
    name = f"virtops-{plugin.device.name}-{secrets.token_hex(4)}.sock"
    _clear(plugin, directory)
    service = Service(plugin)
    server = Server([service], codec=BytesCodec())
    await server.start(path=str(directory / name))
    try:
        yield service, name
    finally:
        server.close()
        (directory / name).unlink(missing_ok=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await server.wait_closed()


def _clear(plugin: Plugin, directory: Path) -> None:
    """Remove the sockets of killed processes. Older releases used a name without a random part."""
    sockets = [
        directory / f"virtops-{plugin.device.name}.sock",
        *directory.glob(f"virtops-{plugin.device.name}-*.sock"),
    ]
    for path in sockets:
        if _is_stale(path):
            path.unlink(missing_ok=True)


def _is_stale(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as attempt:
        try:
            attempt.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:  # it is gone, or its backlog is full
            return False
    return False
