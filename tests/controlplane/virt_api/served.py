# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-api in this process with its own certificates, on a fake API server, and clients to call it."""

from __future__ import annotations

import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from yarl import URL

from controlplane.api.admission.verdict import Settings
from controlplane.engine.clock import SystemClock
from controlplane.tls.certificates import KeyPair, make_ca
from controlplane.virt_api.__main__ import make_server
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.cluster import AUTHENTICATION, Cluster
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.tls import ServingTls
from controlplane.virt_api.server import Server, listening
from controlplane.virt_api.settings import SECRET_NAME
from controlplane.virt_api.settings import Settings as ProcessSettings
from controlplane.virt_api.subresources.handler_client import HandlerClient
from tests.controlplane.kube.fake_api import FakeApi, a_client
from tests.controlplane.tls.pairs import issue_server

Json = dict[str, Any]

DAY = timedelta(days=1)
USER = {"X-Remote-User": "jane", "X-Remote-Group": "dev"}


def now() -> float:
    return datetime.now(UTC).timestamp()


def an_authority(name: str) -> KeyPair:
    return make_ca(name, now(), DAY)


def a_client_pair(
    authority: KeyPair,
    name: str = "front-proxy-client",
    *,
    usage: x509.ObjectIdentifier | None = None,
    begins: float = 0,
    also: str = "",
) -> KeyPair:
    """Issue a client certificate for an hour; usage None omits the extended key usage.

    begins: in seconds from now. also: a second common name.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    start = datetime.now(UTC) - timedelta(minutes=1) + timedelta(seconds=begins)
    builder = (
        x509.CertificateBuilder()
        .subject_name(
            x509.Name(
                [x509.NameAttribute(NameOID.COMMON_NAME, common_name) for common_name in (name, also) if common_name]
            )
        )
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(hours=1))
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)


CLIENTS = ExtendedKeyUsageOID.CLIENT_AUTH
SERVERS = ExtendedKeyUsageOID.SERVER_AUTH


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def secret(pair: KeyPair) -> bytes:
    data = {"tls.crt": encoded(pair.certificate), "tls.key": encoded(pair.key)}
    return json.dumps({"metadata": {"name": SECRET_NAME}, "data": data}).encode()


def authentication(authority: KeyPair, *allowed: str) -> bytes:
    data = {
        "requestheader-client-ca-file": authority.certificate.decode(),
        "requestheader-allowed-names": json.dumps(list(allowed)),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    return json.dumps({"metadata": {"name": AUTHENTICATION.name}, "data": data}).encode()


@dataclass
class Served:
    """A running virt-api and its environment."""

    api: FakeApi
    cluster: Cluster
    directory: Path
    serving_authority: KeyPair
    proxy_authority: KeyPair
    port: int = 0
    server: Server | None = None
    """None until it listens."""
    reviews: list[Json] = field(default_factory=list)
    allowed: bool = True
    """The answer to SubjectAccessReviews."""

    def take_pair(self, pair: KeyPair) -> None:
        self.cluster.take_pair(AUTHENTICATION, None, secret(pair))

    def trust(self, authority: KeyPair, *allowed: str) -> None:
        self.cluster.take_authentication(AUTHENTICATION, None, authentication(authority, *allowed))

    def serving_pair(self) -> KeyPair:
        return issue_server(self.serving_authority, ["virt-api.kubevirt.svc"], now(), DAY)

    def context(self, pair: KeyPair | None = None) -> ssl.SSLContext:
        """The TLS settings of a client that trusts our CA."""
        context = ssl.create_default_context(cadata=self.serving_authority.certificate.decode())
        if pair is not None:
            path = self.directory / f"{id(pair)}.pem"
            path.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(path)
        return context

    @asynccontextmanager
    async def session(self, pair: KeyPair | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """A client that trusts our CA, with or without a client certificate."""
        connector = aiohttp.TCPConnector(ssl=self.context(pair))
        async with aiohttp.ClientSession(connector=connector) as session:
            yield session

    async def call(
        self,
        method: str,
        path: str,
        *,
        pair: KeyPair | None = None,
        session: aiohttp.ClientSession | None = None,
        headers: Any = None,
        body: bytes | None = None,
    ) -> tuple[int, Any]:
        """Send one request. Return the code and the body, decoded if it is JSON, else as text."""
        if session is None:
            async with self.session(pair) as own_session:
                return await self.call(method, path, session=own_session, headers=headers, body=body)
        url = URL(f"https://127.0.0.1:{self.port}{path}", encoded=True)
        data, name = io.BytesIO(body) if body else None, "virt-api.kubevirt.svc"
        async with session.request(method, url, headers=headers, data=data, server_hostname=name) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" and text else text

    def answer_reviews(self) -> None:
        """Let the fake API server answer SubjectAccessReviews and record them."""
        plain = self.api.handle

        async def handle(request: Any) -> Any:
            if not request.path.endswith("/subjectaccessreviews"):
                return await plain(request)
            review = await request.json()
            self.reviews.append(review["spec"])
            return aiohttp.web.json_response(review | {"status": {"allowed": self.allowed}}, status=201)

        self.api.handle = handle  # type: ignore[method-assign]


@asynccontextmanager
async def serving(
    directory: Path,
    *,
    allowed: bool = True,
    settings: Callable[[], Settings] | None = None,
    webhook_clients: WebhookClients | None = None,
) -> AsyncIterator[Served]:
    """Serve. The front proxy's name is front-proxy-client. settings: for admission, by default the cluster's."""
    tls = ServingTls(webhook_clients.authority if webhook_clients is not None else b"")
    api, cluster = FakeApi(), Cluster("kubevirt", tls)
    served = Served(api, cluster, directory, an_authority("ours"), an_authority("proxy"), allowed=allowed)
    served.answer_reviews()
    served.take_pair(served.serving_pair())
    served.trust(served.proxy_authority, "front-proxy-client")
    async with a_client(api) as client:
        handlers = HandlerClient(client, lambda: cluster.client_pair, is_allowed=lambda _address: True)
        process = ProcessSettings("kubevirt", "pod", "INFO", webhook_clients=webhook_clients)
        server = make_server(process, cluster, client, handlers, SystemClock())
        if settings is not None:
            subresources = replace(server.subresources, settings=settings)
            server = replace(server, admission=Admission(settings), subresources=subresources)
        async with handlers, listening(server, "127.0.0.1", 0) as port:
            served.port, served.server = port, server
            yield served


def meanwhile(served: Served, happens: Callable[[], object]) -> None:
    """Call a function between virt-api's read and its first write."""
    original = served.api._patch

    def patch_later(path: str, patch: Json) -> web.StreamResponse:
        served.api._patch = original  # type: ignore[method-assign]
        happens()
        return original(path, patch)

    served.api._patch = patch_later  # type: ignore[method-assign]
