# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-api and a virt-handler's API endpoint over real TLS, on a fake API server; or another program in its place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from controlplane.links.handler import Answer, Done, Power
from controlplane.tls.certificates import KeyPair, Subject, issue
from controlplane.tls.contexts import VIRT_API_CLIENT, load_pair, role_uri
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.node.labels import endpoint_annotations
from tests.controlplane.virt_api.served import (
    CLIENTS,
    DAY,
    USER,
    Json,
    Served,
    a_client_pair,
    an_authority,
    now,
    secret,
    serving,
)
from tests.controlplane.virt_handler.streams.stage import NoStreams

NODE = "/api/v1/nodes/node-1"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"
Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one connection."""


def a_vmi(phase: str = "Running", paused: str = "", **status: Any) -> Json:
    conditions = [{"type": "Paused", "status": "True", "reason": paused}] if paused else []
    interfaces = [{"name": interface["name"], "masquerade": {}} for interface in status.get("interfaces", ())]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "spec": {"domain": {"devices": {"interfaces": interfaces}}},
        "status": {
            "phase": phase,
            "nodeName": "node-1",
            "activePods": {"pod-1": "node-1"},
            "conditions": conditions,
            **status,
        },
    }


class Stage:
    """A virt-api, and the API endpoint of a virt-handler."""

    def __init__(self, served: Served, pair: SelfSignedPair) -> None:
        self.served = served
        self.pair = pair
        self.authority = an_authority("ours")
        self.proxy = a_client_pair(served.proxy_authority, usage=CLIENTS)
        self.questions: list[Power] = []
        self.response: Answer = Done()
        self.tls = EndpointTls(pair)
        self.tls.use_authority(self.authority.certificate)
        self.endpoint = ApiEndpoint(self.tls, "virt", {Power: self._answer}, NoStreams())

    async def _answer(self, question: Power) -> Answer:
        self.questions.append(question)
        return self.response

    async def open(self) -> None:
        self.port = await self.endpoint.open("127.0.0.1", 0)
        self.announce(self.port)
        self.give_client_pair(self.authority)

    def announce(self, port: int, certificate: bytes | None = None) -> None:
        annotations = endpoint_annotations("127.0.0.1", port, certificate or self.pair.der)
        self.served.api.put(NODE, {"metadata": {"name": "node-1", "annotations": annotations}})

    def give_client_pair(self, authority: KeyPair) -> None:
        """Give virt-api a client pair."""
        subject = Subject("virt-api/client", "client", (), role_uri("virt", VIRT_API_CLIENT))
        self.served.cluster.take_client_pair(None, None, secret(issue(authority, subject, now(), DAY)))  # type: ignore[arg-type]

    async def call(self, verb: str, body: bytes = b"{}", namespace: str = "ns") -> tuple[int, Any]:
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/web/{verb}"
        return await self.served.call("PUT", path, pair=self.proxy, headers=USER, body=body)

    async def is_to_be_repeated(self, verb: str) -> bool:
        """Return whether the response makes clients retry automatically."""
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/{verb}"
        async with self.served.session(self.proxy) as session:
            url = f"https://127.0.0.1:{self.served.port}{path}"
            async with session.put(url, headers=USER, server_hostname="virt-api.kubevirt.svc") as response:
                return "Retry-After" in response.headers

    async def get_guest_info(self) -> tuple[int, Any]:
        path = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/userlist"
        return await self.served.call("GET", path, pair=self.proxy, headers=USER)


AnyStage = TypeVar("AnyStage", bound=Stage)


@asynccontextmanager
async def opened(
    make: Callable[[Served, SelfSignedPair], AnyStage], path: Path, pair: SelfSignedPair
) -> AsyncIterator[AnyStage]:
    """Open a stage. path: for the files of virt-api."""
    async with serving(path) as served:
        stage = make(served, pair)
        await stage.open()
        yield stage
        await stage.endpoint.close()


@asynccontextmanager
async def captured(stage: Stage, speak: Speak) -> AsyncIterator[None]:
    """Replace the node's virt-handler by another program."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, stage.pair.certificate, stage.pair.key)
    server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=context)
    stage.announce(server.sockets[0].getsockname()[1])
    stage.served.api.put(VMI, a_vmi())
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


async def leave(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):  # the peer may have closed first
        await writer.wait_closed()


def saying(body: bytes, head: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n") -> Speak:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"reset"}')
        writer.write((head % len(body) if b"%d" in head else head) + body)
        await leave(writer)

    return speak
