# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a connection becomes a WebSocket (RFC 6455, section 4.1). The caller handles the frames."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
from typing import Any, BinaryIO, NamedTuple

from . import streams
from .api import Api, Resource, expect
from .errors import Unavailable
from .transport import Transport

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # the RFC's


class WebSocket(NamedTuple):
    """A connection after its handshake; `close` ends it."""

    socket: socket.socket
    """To write to; its timeout is that of the handshake until it is set."""
    reader: BinaryIO
    """To read from: it may hold what came along with the handshake."""

    def close(self) -> None:
        """Close both."""
        self.reader.close()
        self.socket.close()


def opened(api: Api, resource: Resource, name: str, subresource: str, protocol: str) -> WebSocket:
    """Open a stream of an object (console, VNC, a port) over a connection that is the caller's to close."""
    attempt = f"open {subresource} of {resource.title(name)}"
    status, answer = upgrade(api.transport, resource.path(name, subresource), protocol, attempt)
    stream: WebSocket = answer if status == 101 else expect(attempt, status, answer)
    return stream


def upgrade(transport: Transport, target: str, protocol: str, attempt: str) -> tuple[int, Any]:
    """Return 101 and the WebSocket, or the status and answer of a refusal. protocol: e.g. plain.kubevirt.io.

    Raises Unavailable, and closes the connection, when the answer is no handshake or is for another protocol.
    """
    key = base64.b64encode(os.urandom(16))
    headers = (
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
        ("Sec-WebSocket-Protocol", protocol),
    )
    status, answer = streams.upgrade(transport, target, headers)
    if status != 101:
        return status, answer
    said, *ends = answer
    stream = WebSocket(*ends)
    # SHA-1 is what the RFC asks for: it shows that the answer is one to this request, and protects nothing.
    expected = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()
    given = said.get("Sec-WebSocket-Accept", ""), said.get("Sec-WebSocket-Protocol", "")
    if given != (expected, protocol):
        stream.close()
        raise Unavailable(f"cannot {attempt}: unexpected answer, no WebSocket that speaks {protocol}")
    return status, stream
