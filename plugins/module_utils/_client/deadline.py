# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses with a deadline. A socket's timeout restarts with each byte, so it does not bound a slow response."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any

SILENCE_SECONDS = 30.0


class Timeouts:
    """The timeouts of a response: between two bytes, and for the whole response."""

    def __init__(self) -> None:
        self.silence: float = SILENCE_SECONDS
        self.until: float | None = None
        """Deadline by time.monotonic; None: the caller bounds the read."""

    def allow(self, seconds: float) -> None:
        """Bound all reads from now on."""
        self.silence, self.until = seconds, time.monotonic() + seconds


class Response(http.client.HTTPResponse):
    """A response. Reading header or body raises TimeoutError at the deadline."""

    def __init__(self, within: Timeouts, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_BoundedReader(within, sock, self.fp.detach()))  # type: ignore[attr-defined]


class _BoundedReader(io.RawIOBase):
    """The bytes of a socket until the deadline."""

    def __init__(self, within: Timeouts, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._within, self._sock, self._raw = within, sock, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._within.until is not None:
            remaining = self._within.until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError("it is not complete in time")
            self._sock.settimeout(min(remaining, self._within.silence))
        return self._raw.readinto(buffer)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        self._raw.close()
        super().close()
