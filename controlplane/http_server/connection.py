# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP connection: what ends it before it is parsed, and what is worth no line. How many there are is listener's.

A body in chunks costs its reader as much for a chunk of one byte as for one of a megabyte, and the loop does nothing
else meanwhile: whoever sends a megabyte of the former in a second has all of a processor. Nobody who has proved nothing
has a reason to: API servers know how long a review is, and a probe has no body. A front proxy hands on what its users
send, and answers for them.

The parser holds a head until it ends, up to a megabyte. What all connections hold of heads is at most their number
times what one may. Whether a body follows a head the parser says, not the head: a CONNECT has none, whatever length it
names. Nothing of ours speaks another protocol, so a request for one is answered and is its connection's last.

A transport that is closed first writes what it has, for as long as the peer takes to read it. So it is given a moment.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from aiohttp import hdrs
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from controlplane.http_server.header_limits import Heads
from controlplane.http_server.tls_record_limits import Intake

MOST_HEAD_BYTES = 16 * 1024
"""Of a peer that has proved nothing: heads that are not answered. A review's has some hundred."""
MOST_PROVEN_HEAD_BYTES = 64 * 1024
"""A front proxy hands on its users' headers, and says who they are: names of groups and extras may be long."""
UNREAD_BYTES = 64 * 1024
"""Of a body: then no more is taken in until somebody reads it, which nobody does who has answered without it."""
LAST_WORDS_SECONDS = 10.0
"""From when nothing more will be answered to the end of the connection."""
_IN_CHUNKS = b"\ntransfer-encoding"
"""How the header begins that says so. No JSON has this in it, wherever it is broken into lines."""
_NO_LENGTH = b"411 Length Required"
_TOO_LARGE = b"431 Request Header Fields Too Large"


class _OwnFaults(logging.Filter):
    """Lets through what went wrong here: what peers say wrongly, they can say any number of times."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


log = logging.getLogger(__name__)
log.addFilter(_OwnFaults())


class Connection(RequestHandler):
    """As aiohttp's, but that heads are bounded, and a body needs a length unless the peer has proved who it is."""

    __slots__ = (
        "_chunks",
        "_end",
        "_end_of_last",
        "_heads",
        "_intake",
        "_is_refused",
        "_once_written",
        "is_proven",
        "wire",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, logger=log, read_bufsize=UNREAD_BYTES // 2, **options)
        self.is_proven = self._is_refused = False
        """is_proven: the peer has a certificate that the handshake took."""
        self.wire: asyncio.Transport | None = None
        """Until it is lost. aiohttp knows nothing of one any more that it has closed, and that may yet write."""
        self._once_written: Callable[[], None] | None = None
        self._intake: Intake | None = None
        """Where there is TLS."""
        self._end: asyncio.TimerHandle | None = None
        self._end_of_last = b""
        """A header may be cut in two."""
        self._heads = Heads(MOST_HEAD_BYTES)
        self._chunks: StreamReader | None = None
        """The body of which nobody knows yet how long it is."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire = transport if isinstance(transport, asyncio.Transport) else None
        below = getattr(transport, "_ssl_protocol", None)
        if isinstance(below, SSLProtocol) and self.wire is not None:
            self._intake = Intake(below, self.wire.abort)
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self.is_proven = isinstance(tls, ssl.SSLObject) and tls.getpeercert(binary_form=True) is not None
        if self.is_proven:
            self._heads = Heads(MOST_PROVEN_HEAD_BYTES)
        if self._task_handler is not None:  # it ends when nothing more is to be answered
            self._task_handler.add_done_callback(lambda _task: self._ends())

    def connection_lost(self, exc: BaseException | None) -> None:
        self.wire = None
        if self._intake is not None:
            self._intake.end()
        if self._task_handler is not None and not self._request_in_progress:
            self._task_handler.cancel()  # which would wait for the rest of a body that nobody wants
        super().connection_lost(exc)
        if self._end is not None:
            self._end.cancel()

    def _ends(self) -> None:
        if self.wire is not None and self._end is None:
            self._end = self._loop.call_later(LAST_WORDS_SECONDS, self.wire.abort)

    @property
    def unwritten(self) -> int:
        """How many bytes the kernel has not taken. Those that are encrypted are in the transport below TLS."""
        if self.wire is None:  # what a lost one says of its buffer may stay as it was
            return 0
        below = getattr(getattr(self.wire, "_ssl_protocol", None), "_transport", None)
        buffers = (self.wire, below) if isinstance(below, asyncio.Transport) else (self.wire,)
        return sum(one.get_write_buffer_size() for one in buffers)

    def handed_over(self, once_written: Callable[[], None]) -> None:
        """Call this when the answer that was just made is written, if something arrives no sooner than that.

        Whoever looks now and then may see it later, and what is sent after an answer is not sent ahead of it.
        """
        self._once_written = once_written

    def data_received(self, data: bytes) -> None:
        if self._is_refused or self._close:
            return
        if self._once_written is not None and not self.unwritten:
            self._once_written()
            self._once_written = None
        if not self.is_proven:
            looked_at = self._end_of_last + data
            if _IN_CHUNKS in looked_at.lower():
                self._refuse(_NO_LENGTH)
                return
            self._end_of_last = looked_at[1 - len(_IN_CHUNKS) :]
        if not data:  # what the parser has kept while nobody read
            self._parse(data)
        at = 0
        while at < len(data) and not self._close:
            size = self._heads.take(data, at)
            if not size:
                self._refuse(_TOO_LARGE)
                return
            self._parse(data[at : at + size])
            at += size

    def answered(self) -> None:
        """Note that the answer to a request is written, or will not be."""
        self._heads.answered()

    def _parse(self, data: bytes) -> None:
        before = self._request_count
        super().data_received(data)
        for one in range(self._request_count - before, 0, -1):
            message, payload = self._messages[-one]
            length = _length(message, payload) if data and isinstance(message, RawRequestMessage) else 0
            self._chunks = payload if length is None else None
            self._heads.ended(length)
        if self._chunks is not None and self._chunks.is_eof():
            self._chunks = None
            self._heads.body_ended()
        if self._upgraded:
            self._message_tail = b""
            self.close()

    def _refuse(self, why: bytes) -> None:
        self._is_refused = True
        if self.transport is not None:
            self.transport.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % why)
        self.force_close()
        self._ends()


def _length(message: RawRequestMessage, payload: StreamReader) -> int | None:
    """Return how much of the body is to come; None when that shows only at its end."""
    if payload.is_eof():  # whatever the head says
        return 0
    return None if message.chunked else int(message.headers.get(hdrs.CONTENT_LENGTH, 0))
