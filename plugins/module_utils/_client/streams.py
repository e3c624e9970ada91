# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless responses: lines, events of a watch, and protocol upgrades."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

from . import objects
from .errors import Unavailable
from .refusals import refusal
from .transport import TIMEOUT_SECONDS, Transport

LINE_LIMIT = 4 << 20
"""Bytes of one watch event; the API server stores no object above 1.5 MiB."""


def lines(transport: Transport, target: str, timeout_seconds: float) -> tuple[int, Any]:
    """Return status and the lines of an endless response. Closing the iterator ends it.

    For a refusal, return what `Transport.request` returns. timeout_seconds: for the whole response.
    """
    response = transport.ask(target, timeout_seconds)
    return (200, _lines(transport, response)) if response.status == 200 else transport.whole(response)


def events(transport: Transport, target: str, timeout_seconds: float, attempt: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a watch. Raises the API's errors."""
    status, body = lines(transport, target, timeout_seconds)
    if status != 200:
        raise refusal(attempt, status, body)
    return _events(attempt, body)


def upgrade(transport: Transport, target: str, headers: tuple[tuple[str, str], ...]) -> tuple[int, Any]:
    """Request another protocol. Return the status and, for 101, the response's headers, the socket and its reader.

    The caller then owns both, and must read through the reader: it may already hold the first bytes. The socket is None
    if the response says that it is the last one of the connection.
    For a refusal, return what `Transport.request` returns.
    """
    # The server first opens what the stream leads to: a port of a guest that drops packets takes it ten seconds.
    response = transport.ask(target, TIMEOUT_SECONDS, headers, begin_seconds=TIMEOUT_SECONDS)
    if response.status != 101:
        return transport.whole(response)
    connection = transport.release()
    reader, response.fp = response.fp, None  # otherwise the end of the response would close it
    return 101, (response.headers, connection and connection.sock, reader)


def _lines(transport: Transport, response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while True:
            line = response.readline(LINE_LIMIT)
            if not line or not line.endswith(b"\n"):
                return
            yield line
    except (OSError, ValueError, http.client.HTTPException):
        return  # cut, malformed or late: the caller decides whether to retry
    finally:
        response.close()  # as after a complete response
        transport.close()


def _events(attempt: str, lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            event = objects.json_of(line)
            kind, obj = event["type"], event["object"]
            is_event = isinstance(kind, str) and isinstance(obj["metadata"], dict)
        except (ValueError, TypeError, KeyError):
            is_event = False
        if not is_event:
            raise Unavailable(f"cannot {attempt}: unexpected response, a line that is no event")
        if kind == "ERROR":  # expired or overloaded
            code = obj.get("code")
            raise refusal(attempt, code if isinstance(code, int) and code else 500, obj)
        flaw = objects.flaw(obj, is_named=kind != "BOOKMARK")
        if flaw:
            raise Unavailable(f"cannot {attempt}: unexpected response, an event of no object: {flaw}")
        yield event
