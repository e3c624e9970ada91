# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-api and a virt-handler over real TLS, with sockets in a guest's place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from controlplane.virt_handler.api_endpoint.server import ApiEndpoint
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.served import USER, Json
from tests.controlplane.virt_api.subresources.stage import VMI, Stage, a_vmi
from tests.controlplane.virt_handler.streams.stage import GUEST, Device, DeviceSockets

Socket = aiohttp.ClientWebSocketResponse
POD = "/api/v1/namespaces/ns/pods/virt-launcher-web"
CREATED_BY = "kubevirt.io/created-by"
NETWORK = [{"name": "default", "ipAddress": "10.0.0.9"}]


class Streaming(Stage):
    """A virt-api, a virt-handler, and the serial console of its guest."""

    def __init__(self, served: Any, own: SelfSignedPair, directory: Path) -> None:
        super().__init__(served, own)
        self.device = Device(directory)
        self.sockets = DeviceSockets(self.device)
        self.endpoint = ApiEndpoint(self.tls, "virt", {}, self.sockets)

    async def open(self) -> None:
        await self.device.open()
        await super().open()

    def put_vmi(self, vmi: Json | None = None) -> None:
        uid = GUEST.vmi_uid
        vmi = vmi or a_vmi()
        self.served.api.put(VMI, {**vmi, "metadata": {"name": "web", "namespace": "ns", "uid": uid}})
        pod = {"uid": GUEST.pod_uid, "name": "virt-launcher-web", "namespace": "ns", "labels": {CREATED_BY: uid}}
        self.served.api.put(POD, {"metadata": pod, "status": {"podIP": "127.0.0.1"}})

    @asynccontextmanager
    async def stream(
        self, path: str, machine: str = "virtualmachineinstances", **headers: str
    ) -> AsyncIterator[Socket]:
        url = (
            f"https://127.0.0.1:{self.served.port}/apis/subresources.kubevirt.io/v1/namespaces/ns/{machine}/web/{path}"
        )
        async with (
            self.served.session(self.proxy) as session,
            session.ws_connect(
                url,
                headers={**USER, **headers},
                server_hostname="virt-api.kubevirt.svc",
                protocols=("v4.channel.k8s.io", "plain.kubevirt.io"),
            ) as websocket,
        ):
            yield websocket

    async def refusal(self, path: str, machine: str = "virtualmachineinstances", **headers: str) -> tuple[int, str]:
        """Return the code and the message of the Status before a stream begins."""
        status = await self.refused(path, machine, **headers)
        return status["code"], status["message"]

    async def refused(self, path: str, machine: str = "virtualmachineinstances", **headers: str) -> Json:
        """Return the Status before a stream begins."""
        url = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/{machine}/web/{path}"
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        code, body = await self.served.call("GET", url, pair=self.proxy, headers={**USER, **upgrade, **headers})
        status: Json = body if isinstance(body, dict) else json.loads(body)
        assert status["code"] == code
        return status


@asynccontextmanager
async def echoing() -> AsyncIterator[int]:
    """A TCP server that echoes; yields its port."""

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
