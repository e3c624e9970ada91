# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams from a client through virt-api to a guest, over real TLS; sockets stand in for the guest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controlplane.links.handler import NotDone
from controlplane.links.relay import Close
from controlplane.links.streams import ENDED, FORBIDDEN, LOST, MOVED, OpenStream
from controlplane.virt_api.streams import audit, serve
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.streams.guest_sockets import StreamRefused
from tests.controlplane.api import golden
from tests.controlplane.virt_api.served import USER, Json, serving
from tests.controlplane.virt_api.subresources.test_power_requests import VMI, Stage, a_vmi, pair
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams.stage import GUEST, Device, DeviceSockets
from tests.controlplane.virt_handler.streams.test_sessions import is_closed

__all__ = ["pair"]  # a fixture

Socket = aiohttp.ClientWebSocketResponse
VM = VMI.replace("virtualmachineinstances", "virtualmachines")
POD = "/api/v1/namespaces/ns/pods/virt-launcher-web"
CREATED_BY = "kubevirt.io/created-by"


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
        url = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/{machine}/web/{path}"
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        code, body = await self.served.call("GET", url, pair=self.proxy, headers={**USER, **upgrade, **headers})
        return code, (body if isinstance(body, dict) else json.loads(body))["message"]


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Streaming]:
    async with serving(tmp_path) as served:
        stage = Streaming(served, pair, tmp_path)
        await stage.open()
        yield stage
        await stage.endpoint.close()
        await stage.device.close()


async def test_a_console_is_a_websocket_of_upstreams_protocol(stage: Streaming) -> None:
    stage.put_vmi()
    async with stage.stream("console") as websocket:
        assert websocket.protocol == "plain.kubevirt.io"
        await websocket.send_bytes(b"root\n")
        await until(lambda: bytes(stage.device.read) == b"root\n", "the input at the guest")
        stage.device.write(b"# ")
        assert await websocket.receive_bytes() == b"# "
    assert stage.sockets.openings == [OpenStream(GUEST, "serial", "jane")]
    assert [review["resourceAttributes"]["subresource"] for review in stage.served.reviews] == ["console"]


async def test_each_session_is_logged_with_user_duration_and_bytes(
    stage: Streaming, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put_vmi()
    with caplog.at_level("INFO", audit.__name__):
        async with stage.stream("console") as websocket:
            await websocket.send_bytes(b"root\n")
            await until(lambda: bytes(stage.device.read) == b"root\n", "the input at the guest")
            stage.device.write(b"# ")
            await websocket.receive_bytes()
        await until(lambda: "stream ended" in caplog.messages, "the end of the session")
    record = next(record for record in caplog.records if record.getMessage() == "stream ended")
    logged = vars(record)
    assert [logged[name] for name in ("key", "path", "user")] == ["ns/web", "console", "jane"]
    assert (logged["bytes_to_client"], logged["bytes_from_client"]) == (2, 5)
    assert logged["seconds"] >= 0


async def test_a_session_that_breaks_is_logged_too(stage: Streaming, caplog: pytest.LogCaptureFixture) -> None:
    stage.put_vmi()
    with caplog.at_level("INFO", audit.__name__):
        async with stage.stream("vnc") as websocket:
            websocket._response.connection.transport.abort()  # type: ignore[union-attr]
        await until(lambda: "stream ended" in caplog.messages, "the end of the session")
    ended = next(vars(record) for record in caplog.records if record.getMessage() == "stream ended")
    assert (ended["path"], ended["because"]) == ("vnc", "the client is gone")


@pytest.mark.parametrize("path", ["console", "vnc"])
@pytest.mark.parametrize(
    "condition",
    [
        {"type": "Paused", "status": "True", "reason": "PausedByUser"},
        {"type": "Ready", "status": "False", "reason": "GuestNotReady"},
    ],
    ids=["paused", "its readiness probe fails"],
)
async def test_a_guest_that_is_not_ready_can_be_looked_into(stage: Streaming, path: str, condition: Json) -> None:
    stage.put_vmi(a_vmi(conditions=[condition]))
    async with stage.stream(path) as websocket:
        await until(lambda: bool(stage.device.connections), "the connection")
        stage.device.write(b"x")
        assert await websocket.receive_bytes() == b"x"


async def test_a_port_of_a_guest_whose_readiness_probe_fails_is_forwarded(stage: Streaming) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "GuestNotReady"}
    stage.put_vmi(a_vmi(interfaces=NETWORK, conditions=[condition]))
    async with echoing() as port, stage.stream(f"portforward/{port}") as websocket:
        await websocket.send_bytes(b"hello")
        assert await websocket.receive_bytes() == b"hello"


@pytest.mark.parametrize("name", ["usbredir", "vsock"])
async def test_streams_that_are_not_built_are_named(stage: Streaming, name: str) -> None:
    stage.put_vmi()
    code, message = await stage.refusal(name)
    assert (code, f"virtualmachineinstances/{name} is not implemented" in message) == (501, True)


async def test_a_long_output_and_input_arrive_whole(stage: Streaming) -> None:
    stage.put_vmi()
    data = bytes(range(256)) * 4096
    async with stage.stream("vnc") as websocket:
        for start in range(0, len(data), 32768):
            await websocket.send_bytes(data[start : start + 32768])
        await until(lambda: len(stage.device.read) == len(data), "the input")
        assert stage.device.read == data
        stage.device.write(data)
        received = bytearray()
        while len(received) < len(data):
            received += await websocket.receive_bytes()
        assert received == data


@pytest.mark.parametrize(
    ("path", "is_wanted"),
    [("console?backlog=true", True), ("console?backlog=false", False), ("console", False), ("vnc?backlog=true", False)],
)
async def test_a_console_may_begin_with_its_backlog(stage: Streaming, path: str, is_wanted: bool) -> None:
    stage.put_vmi()
    stage.sockets.printed = b"login: "
    async with stage.stream(path) as websocket:
        assert [opening.with_backlog for opening in stage.sockets.openings] == [is_wanted]
        if is_wanted:
            assert await websocket.receive_bytes() == b"login: "


@pytest.mark.parametrize(
    ("query", "keep"), [("", False), ("?preserveSession=true", True), ("?preserveSession=x", False)]
)
async def test_a_screen_may_keep_the_existing_session(stage: Streaming, query: str, keep: bool) -> None:
    stage.put_vmi()
    async with stage.stream(f"vnc{query}"):
        assert stage.sockets.openings == [OpenStream(GUEST, "vnc", "jane", keep_existing=keep)]


@pytest.mark.parametrize(
    ("end", "code", "reason"),
    [
        (
            Close(MOVED, "the guest moved to node node-2: connect again"),
            MOVED,
            "the guest moved to node node-2: connect again",
        ),
        (Close(FORBIDDEN, "\x1b[31mred"), LOST, "the connection to the guest's virt-handler broke"),
    ],
    ids=["a migration", "a code that no virt-handler sends"],
)
async def test_the_end_of_a_guest_reaches_the_client(stage: Streaming, end: Close, code: int, reason: str) -> None:
    """A compromised node may send any code and text."""
    stage.put_vmi()
    stage.sockets.end = end
    async with stage.stream("console") as websocket:
        await until(lambda: bool(stage.device.connections), "the connection")
        stage.device.writer.close()
        assert await is_closed(websocket) == (code, reason)


async def test_a_right_that_is_taken_away_ends_the_session(stage: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_vmi()
    monkeypatch.setattr(serve, "REVIEW_SECONDS", 0.01)
    async with stage.stream("console") as websocket:
        stage.served.allowed = False
        code, reason = await is_closed(websocket)
    assert (code, "taken away" in reason) == (FORBIDDEN, True)
    await until(lambda: stage.device.closed == 1, "the end of the connection")


DEVICES = {
    "console": {"spec": {"domain": {"devices": {"autoattachSerialConsole": False}}}},
    "vnc": {"spec": {"domain": {"devices": {"autoattachGraphicsDevice": False}}}},
}


@pytest.mark.parametrize(
    ("path", "vmi", "code", "text"),
    [
        ("console", {}, 404, "not found"),
        ("console", a_vmi("Scheduled"), 400, "is not running (yet): its phase is Scheduled"),
        ("console", a_vmi("Failed"), 409, "has failed"),
        ("vnc", a_vmi("Failed"), 400, "its phase is Failed"),
        ("console", {**a_vmi(), **DEVICES["console"]}, 400, "no serial console"),
        ("vnc", {**a_vmi(), **DEVICES["vnc"]}, 400, "no graphics device"),
        ("portforward/22", a_vmi(paused="PausedByUser", interfaces=[{"name": "default"}]), 409, "unpause it"),
        ("portforward/22", a_vmi(), 400, "no network interface"),
        ("portforward/99999", a_vmi(), 400, "from 1 to 65535"),
        ("portforward/22/sctp", a_vmi(), 400, "use tcp or udp"),
        ("portforward", a_vmi(), 400, "is no port"),
    ],
)
async def test_a_stream_that_cannot_begin_is_refused_with_upstreams_code(
    stage: Streaming, path: str, vmi: Json, code: int, text: str
) -> None:
    if vmi:
        stage.put_vmi(vmi)
    answered, message = await stage.refusal(path)
    assert answered == code
    assert text in message
    assert stage.sockets.openings == []


@pytest.mark.parametrize(("kind", "code"), [("absent", 404), ("refused", 400), ("busy", 503), ("lost", 500)])
async def test_a_refusal_of_virt_handler_has_its_code(stage: Streaming, kind: Any, code: int) -> None:
    stage.put_vmi()
    stage.sockets.refusal = StreamRefused(NotDone(kind, "in use by joe"))
    assert await stage.refusal("vnc") == (code, "vnc of virtualmachineinstance ns/web: in use by joe")


async def test_a_virt_handler_that_is_down_is_named(stage: Streaming) -> None:
    stage.put_vmi()
    await stage.endpoint.close()
    code, message = await stage.refusal("console")
    assert code == 503
    assert "virt-handler of node node-1" in message


async def test_pages_of_other_origins_are_refused(stage: Streaming) -> None:
    stage.put_vmi()
    code, message = await stage.refusal("console", Origin="https://cloud.example")
    assert code == 403
    assert "a web page of https://cloud.example may not open it" in message
    assert "virtops.kubevirt/console-origins" in message
    async with stage.stream("console", Origin="http://127.0.0.1:8001"):
        pass
    async with stage.stream("console", **{"Origin": "https://cloud.example", "Sec-Fetch-Site": "same-origin"}):
        pass
    stage.served.cluster.console_origins = frozenset({"https://cloud.example"})
    async with stage.stream("console", Origin="https://cloud.example"):
        pass


async def test_a_request_without_a_right_or_an_upgrade_is_refused(stage: Streaming) -> None:
    stage.put_vmi()
    async with stage.stream("console") as websocket:
        code, message = await stage.refusal("console", Upgrade="h2c")
        assert (code, "use a WebSocket" in message) == (400, True)
        await websocket.send_bytes(b"x")
        await until(lambda: bytes(stage.device.read) == b"x", "the session that stays")
    stage.served.allowed = False
    assert (await stage.refusal("console"))[0] == 403


async def test_streams_are_limited_by_namespace_and_machine(stage: Streaming) -> None:
    stage.put_vmi()
    server = stage.served.server
    assert server is not None
    with server.streams.by_machine.reserve("ns/web", serve.SESSIONS_OF_MACHINE, ""):
        code, message = await stage.refusal("console")
        assert (code, "machine ns/web has 16" in message) == (429, True)
    with server.streams.by_namespace.reserve("ns", serve.SESSIONS_OF_NAMESPACE, ""):
        code, message = await stage.refusal("console")
        assert (code, "namespace ns has 64" in message) == (429, True)
    with (
        server.streams.by_namespace.reserve("other", serve.SESSIONS_OF_NAMESPACE, ""),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(server.streams.by_namespace, "_limit", serve.SESSIONS_OF_NAMESPACE)
        code, message = await stage.refusal("console")
        assert (code, "or virt-api has 256" in message) == (429, True)
    assert server.streams.by_machine.is_unused


def a_vm(*, created: bool) -> Json:
    vm = golden.load("vm-cirros")
    return {**vm, "metadata": {"name": "web", "namespace": "ns"}, "status": {"created": created}}


NETWORK = [{"name": "default", "ipAddress": "10.0.0.9"}]


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


class EchoUdp(asyncio.DatagramProtocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(data.upper(), addr)


@pytest.mark.parametrize("machine", ["virtualmachines", "virtualmachineinstances"])
async def test_a_port_of_the_guest_is_forwarded(stage: Streaming, machine: str) -> None:
    """The address is the launcher Pod's: the VMI's status, which its node writes, names another."""
    stage.put_vmi(a_vmi(interfaces=NETWORK))
    stage.served.api.put(VM, a_vm(created=True))
    async with echoing() as port, stage.stream(f"portforward/{port}", machine) as websocket:
        await websocket.send_bytes(b"hello")
        assert await websocket.receive_bytes() == b"hello"


async def test_datagrams_are_forwarded(stage: Streaming) -> None:
    stage.put_vmi(a_vmi(interfaces=NETWORK))
    transport, _unused = await asyncio.get_running_loop().create_datagram_endpoint(EchoUdp, ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    async with stage.stream(f"portforward/{port}/udp") as websocket:
        for datagram in (b"a", b"b"):
            await websocket.send_bytes(datagram)
            assert await websocket.receive_bytes() == datagram.upper()
    transport.close()


async def test_the_end_of_a_forwarded_connection_closes_the_stream(stage: Streaming) -> None:
    stage.put_vmi(a_vmi(interfaces=NETWORK))

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with stage.stream(f"portforward/{server.sockets[0].getsockname()[1]}") as websocket:
        assert await websocket.receive_bytes() == b"bye"
        assert await is_closed(websocket) == (ENDED, "the guest has closed the connection")
    server.close()


async def test_a_closed_port_of_the_guest_is_named(stage: Streaming) -> None:
    stage.put_vmi(a_vmi(interfaces=NETWORK))
    async with echoing() as port:
        pass
    code, message = await stage.refusal(f"portforward/{port}")
    assert code == 500
    assert f"port {port} of the guest: nothing listens there" in message


async def test_a_vm_without_an_instance_has_no_ports(stage: Streaming) -> None:
    stage.served.api.put(VM, a_vm(created=False))
    code, message = await stage.refusal("portforward/22", "virtualmachines")
    assert (code, "start it first" in message) == (409, True)


async def test_a_pod_without_an_address_has_no_ports(stage: Streaming) -> None:
    stage.put_vmi(a_vmi(interfaces=NETWORK))
    stage.served.api.put(
        POD, {"metadata": {"name": "virt-launcher-web", "uid": "another", "labels": {CREATED_BY: "x"}}}
    )
    code, message = await stage.refusal("portforward/22")
    assert (code, "no address" in message) == (400, True)
