# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP connection: what ends it before it is parsed, and what is worth no line. How many there are is listener's.

A body in chunks costs its reader as much for a chunk of one byte as for one of a megabyte, and the loop does nothing
else meanwhile: whoever sends a megabyte of the former in a second has all of a processor. Nobody who has proved nothing
has a reason to: API servers know how long a review is, and a probe has no body. A front proxy hands on what its users
send, and answers for them.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

_IN_CHUNKS = b"\ntransfer-encoding"
"""How the header begins that says so. No JSON has this in it, wherever it is broken into lines."""
_REFUSAL = b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class _OwnFaults(logging.Filter):
    """Lets through what went wrong here: what peers say wrongly, they can say any number of times."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


log = logging.getLogger(__name__)
log.addFilter(_OwnFaults())


class Connection(RequestHandler):
    """As aiohttp's, but that a body has to have a length unless the peer has proved who it is."""

    __slots__ = ("_end_of_last", "_is_refused", "is_proven")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, logger=log, **options)
        self.is_proven = self._is_refused = False
        """is_proven: the peer has a certificate that the handshake took."""
        self._end_of_last = b""
        """A header may be cut in two."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self.is_proven = isinstance(tls, ssl.SSLObject) and tls.getpeercert(binary_form=True) is not None

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        if not self.is_proven:
            looked_at = self._end_of_last + data
            if _IN_CHUNKS in looked_at.lower():
                self._refuse()
                return
            self._end_of_last = looked_at[1 - len(_IN_CHUNKS) :]
        super().data_received(data)

    def _refuse(self) -> None:
        self._is_refused = True
        if self.transport is not None:
            self.transport.write(_REFUSAL)
            self.transport.close()
