# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How answers and streams end, and what is done about it. Requests, refusals and tokens: test_client."""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import Any, cast

import aiohttp
import pytest

from controlplane.engine.errors import Unavailable
from controlplane.kube.credentials import anonymous
from controlplane.kube.transport import Request, Transport, _lines

ASKED = Request("GET", "/api/v1/pods", "list pods")


class Content:
    """A stream that comes in these pieces, and ends."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces, b""]

    async def read(self, _limit: int) -> bytes:
        return self._pieces.pop(0)


async def lines_of(*pieces: bytes) -> list[bytes]:
    return [line async for line in _lines(cast(aiohttp.StreamReader, Content(*pieces)), "watch pods")]


async def test_lines_are_whole_however_they_come() -> None:
    assert await lines_of(b'{"a"', b": 1}\n\n", b"{}\n{", b"}\n") == [b'{"a": 1}', b"{}", b"{}"]


async def test_a_stream_that_ends_within_a_line_has_broken() -> None:
    """Its end is no end of a watch, after which the next one is opened at once."""
    with pytest.raises(Unavailable, match="cannot watch pods: the stream ended within a line"):
        await lines_of(b"{}\n", b'{"a"')


async def test_who_serves_with_a_certificate_that_is_not_trusted_has_the_authority_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have been exchanged, and the Pod's file of it with it."""
    read: list[str] = []

    async def refuse(*_unused: Any, **__: Any) -> Any:
        raise aiohttp.ClientConnectorCertificateError(cast(Any, None), ssl.CertificateError("self-signed"))

    monkeypatch.setattr(Transport, "_open", refuse)
    credentials = replace(anonymous("https://127.0.0.1:6443"), reload_trust=lambda: read.append("authority"))
    async with Transport(credentials, "test") as transport:
        with pytest.raises(Unavailable, match="cannot list pods: the server's certificate is not trusted"):
            await transport.send(ASKED)
    assert read == ["authority"]
