# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a connection takes in below TLS: a little at a time, and few records that say nothing. It is read nowhere else.

A record that asks for new keys has twenty-seven bytes and costs some thirty microseconds, and an answer that is held
until it is read. TLS 1.3 lets a peer ask at any time, any number of times, and OpenSSL does all that is there before
anybody hears of it: a quarter of a megabyte of them was a third of a second in which the loop did nothing else, on each
connection. Whether a record is one is encrypted, but how long it is is not; what is said a letter at a time costs much,
too. No client of ours asks for keys. One whose request has a short body sends a record of that, and one of the head.

asyncio reads 256 KiB at a time, and keeps as much memory for that for as long as a connection is.
"""

from __future__ import annotations

from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

READ_BYTES = 32 * 1024
"""At a time: two records of the largest."""
SHORT = 36
"""Bytes of a record after its header, of which seventeen are TLS's own: what is shorter, it lacks."""
MOST_LACKING = 4096
"""In all records until now, less a sixteenth of what longer ones had: some three hundred short ones in a row."""
_HEADER = 5


class Records:
    """Counts the records of a stream, which begins with one. Pure."""

    def __init__(self) -> None:
        self._begun = b""
        """A header may be cut in two."""
        self._left = 0
        """Of the record that has begun."""
        self._lacking = 0

    def take(self, data: bytes | memoryview) -> bool:
        """Note what has come in; False when there were too many short records."""
        at = 0
        while at < len(data):
            if self._left:
                size = min(self._left, len(data) - at)
                self._left -= size
            else:
                size = min(_HEADER - len(self._begun), len(data) - at)
                self._begun += data[at : at + size]
                if len(self._begun) == _HEADER and not self._begin():
                    return False
            at += size
        return True

    def _begin(self) -> bool:
        self._left = int.from_bytes(self._begun[3:])
        self._begun = b""
        self._lacking += SHORT - self._left if self._left < SHORT else -self._left // 16
        self._lacking = max(0, self._lacking)
        return self._lacking <= MOST_LACKING


class Intake:
    """Has a TLS connection take in little at a time, and ends one of too many short records before they are read."""

    def __init__(self, tls: SSLProtocol, cut_off: Callable[[], None]) -> None:
        """Begin with the end of the handshake: whatever has come in and is none of it begins with a record."""
        opened: Any = tls  # asyncio has no other way to hear of this
        self._tls = opened
        self._cut_off = cut_off
        self._records = Records()
        self._take_in = opened.buffer_updated
        opened.buffer_updated = self._updated
        opened.max_size = READ_BYTES
        opened._ssl_buffer = bytearray(READ_BYTES)
        opened._ssl_buffer_view = memoryview(opened._ssl_buffer)
        come_in = opened._incoming.read()
        opened._incoming.write(come_in)
        self._take(come_in)

    def end(self) -> None:
        """Let go of the connection, which is lost, lest it wait for the collector of garbage."""
        self._tls.__dict__.pop("buffer_updated", None)

    def _updated(self, size: int) -> None:
        if self._take(self._tls._ssl_buffer_view[:size]):
            self._take_in(size)

    def _take(self, data: bytes | memoryview) -> bool:
        is_fair = self._records.take(data)
        if not is_fair:
            self._cut_off()
        return is_fair
