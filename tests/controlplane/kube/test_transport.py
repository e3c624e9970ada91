# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How responses and streams end. Requests, refusals and tokens: test_client."""

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
    """A stream of these chunks."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces, b""]

    async def read(self, _limit: int) -> bytes:
        return self._pieces.pop(0)


async def lines_of(*pieces: bytes) -> list[bytes]:
    return [line async for line in _lines(cast(aiohttp.StreamReader, Content(*pieces)), "watch pods")]


async def test_lines_are_whole_for_any_chunks() -> None:
    assert await lines_of(b'{"a"', b": 1}\n\n", b"{}\n{", b"}\n") == [b'{"a": 1}', b"{}", b"{}"]


async def test_a_stream_that_ends_within_a_line_is_an_error() -> None:
    """A normal end would open the next watch at once."""
    with pytest.raises(Unavailable, match="cannot watch pods: the stream ended within a line"):
        await lines_of(b"{}\n", b'{"a"')


async def test_an_untrusted_server_certificate_makes_the_client_read_the_ca_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The CA may have been replaced, and the file in the Pod with it."""
    read: list[str] = []

    async def refuse(*_unused: Any, **__: Any) -> Any:
        raise aiohttp.ClientConnectorCertificateError(cast(Any, None), ssl.CertificateError("self-signed"))

    monkeypatch.setattr(Transport, "_open", refuse)
    credentials = replace(anonymous("https://127.0.0.1:6443"), reload_trust=lambda: read.append("authority"))
    async with Transport(credentials, "test") as transport:
        with pytest.raises(Unavailable, match="cannot list pods: the server's certificate is not trusted"):
            await transport.send(ASKED)
    assert read == ["authority"]
