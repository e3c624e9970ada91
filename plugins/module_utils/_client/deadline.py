# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that are read in time, however slowly they come: a socket's own timeout begins anew with every byte."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any

SILENCE_SECONDS = 30.0


class Within:
    """The time in which an answer is read: silence in it, and all of it, however slowly it comes."""

    def __init__(self) -> None:
        self.silence: float = SILENCE_SECONDS
        self.until: float | None = None
        """By time.monotonic; None: whoever reads has bounds of his own."""

    def allow(self, seconds: float) -> None:
        """Let what is read from now on take so long."""
        self.silence, self.until = seconds, time.monotonic() + seconds


class Response(http.client.HTTPResponse):
    """An answer whose head and body end in time, or raise TimeoutError."""

    def __init__(self, within: Within, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Timely(within, sock, self.fp.detach()))  # type: ignore[attr-defined]


class _Timely(io.RawIOBase):
    """What a socket says, as long as there is time."""

    def __init__(self, within: Within, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._within, self._sock, self._raw = within, sock, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._within.until is not None:
            left = self._within.until - time.monotonic()
            if left <= 0:
                raise TimeoutError("it is not complete in time")
            self._sock.settimeout(min(left, self._within.silence))
        return self._raw.readinto(buffer)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        self._raw.close()
        super().close()
