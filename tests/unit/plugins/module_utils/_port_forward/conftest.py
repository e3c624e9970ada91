# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest behind an API server: its ports echo, respond once, are cut, or refuse."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support import http_server

PORTS = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/{name}/portforward/{port}"
GUESTS = kinds.operations(kinds.VMI, "default")
ECHO, ONE_LINE, CUT, CLOSED, FLOOD = 7, 80, 13, 9, 19
FLOOD_BYTES = 8 << 20


class Server:
    """Serves the ports of machine `database`."""

    def __init__(self) -> None:
        self.refusals: list[tuple[int, str]] = []
        """Code and message of the next responses."""
        self.wrong_field = ""
        """Of the machine's spec, which the refusals name."""
        self.opened = 0

    async def port(self, request: web.Request) -> web.StreamResponse:
        port = int(request.match_info["port"])
        if request.match_info["name"] != "database":
            return self._refuse(404, "virtualmachineinstance not found")
        if port == CLOSED:
            self.refusals.append((500, f"cannot connect to port {CLOSED} of the guest: nothing listens there"))
        if self.refusals:
            return self._refuse(*self.refusals.pop(0))
        self.opened += 1
        stream = web.WebSocketResponse(protocols=("plain.kubevirt.io",))
        await stream.prepare(request)
        code, reason = await self._talk(stream, port)
        await stream.close(code=code, message=reason)
        return stream

    async def _talk(self, stream: web.WebSocketResponse, port: int) -> tuple[int, bytes]:
        if port == FLOOD:
            for _unused in range(FLOOD_BYTES // 32768):
                await stream.send_bytes(bytes(32768))
            return 1000, b"the guest has closed the connection"
        if port == CUT:
            await stream.send_bytes(b"partial")
            return 1011, b"the guest has reset the connection"
        async for message in stream:
            if message.type is WSMsgType.BINARY:
                await stream.ping()
                await stream.send_bytes(message.data)
                if port == ONE_LINE and message.data.endswith(b"\n"):
                    return 1000, b"the guest has closed the connection"
        return 1000, b""

    def _refuse(self, code: int, message: str) -> web.Response:
        status = {"kind": "Status", "status": "Failure", "code": code, "message": message}
        causes = [{"field": self.wrong_field, "message": message}] if self.wrong_field else []
        return web.json_response({**status, "details": {"name": "database", "causes": causes}}, status=code)


def a_free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with http_server.serving({PORTS: server.port}) as url, closing(Api(Transport(Endpoint(server=url)))) as api:
        yield api


@pytest.fixture
def tls_api(server: Server, tmp_path: Path) -> Iterator[Api]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = _write_pair(tmp_path / "pair")
    context.load_cert_chain(tmp_path / "pair")
    with (
        http_server.serving({PORTS: server.port}, context) as url,
        closing(Api(Transport(Endpoint(server=url, ca_data=certificate, server_name="server")))) as api,
    ):
        yield api


def _write_pair(path: Path) -> str:
    """Write a key and its certificate; return the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("server")]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(key.private_bytes(*form) + certificate)
    return certificate.decode()
