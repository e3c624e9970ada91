# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One stream to a TCP port of a guest. Its errors name the machine, the port and what to do."""

from __future__ import annotations

from .._client import websocket
from .._client.api import Api, Resource, expect
from .._client.errors import ApiError
from .._client.websocket import WebSocket
from .._client.websocket_frames import BROKEN, Closed
from .._vm import guest_access
from ..kubevirt_api import names
from ..kubevirt_api.close_codes import FORBIDDEN, LOST, MOVED, REPLACED, TOO_SLOW

_REMEDIES = {
    409: "kubevirt_vm with state=unpaused unpauses it",
    429: "close connections that nobody uses",
    500: "have a program in the guest listen on this port, not on 127.0.0.1 alone, and look at the guest's firewall",
}
"""What to do about a refusal, by its HTTP status, beside what guest_access knows."""
_AGAIN = "run the task that uses the port again"
_ENDS = {
    BROKEN: f"look whether the machine still runs (kubevirt_vmi_info), and {_AGAIN}",
    LOST: f"look whether the machine still runs (kubevirt_vmi_info) and what its program says, and {_AGAIN}",
    MOVED: _AGAIN,
    TOO_SLOW: f"{_AGAIN}, and have it read what the program sends",
    FORBIDDEN: "ask the cluster's administrator for this right",
    REPLACED: f"{_AGAIN}, with the new instance",
}
"""What to do about the end of a stream, by its close code (docs/api.md)."""


def open_port(api: Api, resource: Resource, name: str, port: int) -> WebSocket:
    """Open a stream to a port of a machine; the caller closes it. Raises the API's errors.

    resource: instances or machines of the aggregated API (kinds.operations).
    """
    attempt = _attempt(resource, name, port)
    target = resource.path(name, f"portforward/{port}")
    status, result = websocket.upgrade(api.transport, target, names.STREAM_PROTOCOL, attempt)
    if status == 101:
        stream: WebSocket = result
        return stream
    try:
        expect(attempt, status, result)
    except ApiError as error:
        raise guest_access.explained(error, _REMEDIES) from error
    raise AssertionError(status)  # expect raises for each status of a refusal


def why_ended(resource: Resource, name: str, port: int, closed: Closed) -> str:
    """Return a sentence about the end of a stream. Pure."""
    reason = str(closed) or f"close code {closed.code}"
    text = f"the connection to port {port} of {resource.title(name)} ended: {reason}"
    remedy = _ENDS.get(closed.code, _ENDS[BROKEN])
    return f"{text}; {remedy}"


def _attempt(resource: Resource, name: str, port: int) -> str:
    return f"connect to port {port} of {resource.title(name)}"
