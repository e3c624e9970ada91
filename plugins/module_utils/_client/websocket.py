# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The handshake that makes a connection a WebSocket (RFC 6455, section 4.1). The caller handles the frames."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, NamedTuple

from . import paths, streams
from .api import Api, Resource, expect
from .errors import Unavailable
from .transport import Transport

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # the RFC's


class WebSocket(NamedTuple):
    """A connection after its handshake; `close` ends it."""

    socket: socket.socket
    """Write to this. It keeps the timeout of the handshake until the caller sets another."""
    reader: BufferedReader
    """Read from this: it may already hold bytes that follow the handshake."""

    def close(self) -> None:
        """Close both."""
        self.reader.close()
        self.socket.close()


def opened(
    api: Api,
    resource: Resource,
    name: str,
    subresource: str,
    protocol: str,
    *,
    query: Mapping[str, object] | None = None,
) -> WebSocket:
    """Open a stream of an object (console, VNC, a port). The caller closes it."""
    attempt = f"open {subresource} of {resource.title(name)}"
    target = paths.with_query(resource.path(name, subresource), query or {})
    status, result = upgrade(api.transport, target, protocol, attempt)
    stream: WebSocket = result if status == 101 else expect(attempt, status, result)
    return stream


def upgrade(transport: Transport, target: str, protocol: str, attempt: str) -> tuple[int, Any]:
    """Return 101 and the WebSocket, or the status and body of a refusal. protocol: e.g. plain.kubevirt.io.

    Raises Unavailable and closes the connection if the response is no handshake, or is for another protocol.
    """
    key = base64.b64encode(os.urandom(16))
    headers = (
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
        ("Sec-WebSocket-Protocol", protocol),
    )
    status, result = streams.upgrade(transport, target, headers)
    if status != 101:
        return status, result
    response_headers, connection, reader = result
    stream = WebSocket(connection, reader)
    # The RFC requires SHA-1. It shows that the response belongs to this request, and protects nothing.
    expected = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()
    actual = response_headers.get("Sec-WebSocket-Accept", ""), response_headers.get("Sec-WebSocket-Protocol", "")
    if connection is None or actual != (expected, protocol):  # None: the response says that it is the last one
        reader.close()
        if connection is not None:
            connection.close()
        raise Unavailable(f"cannot {attempt}: unexpected response, no WebSocket that speaks {protocol}")
    return status, stream
