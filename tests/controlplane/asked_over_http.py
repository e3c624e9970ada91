# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP requests to our processes on this host, as a kubelet or Prometheus sends them."""

from __future__ import annotations

import asyncio
import socket
import ssl

import aiohttp


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def fetch(url: str) -> tuple[int, str]:
    """Return code and body. As theirs, the request does not verify the certificate."""
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
        return answer.status, await answer.text()


async def accepts_tls_1_2(port: int) -> bool:
    """Tell whether a server of this host accepts a client that knows nothing newer."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        _unused, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
    except (ssl.SSLError, ConnectionResetError):
        return False
    writer.close()
    return True
