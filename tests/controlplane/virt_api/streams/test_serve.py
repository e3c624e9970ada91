# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Consoles and screens from a client through virt-api to a guest, and what every stream has in common."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubevirt_api.close_codes import FORBIDDEN, LOST, MOVED

from controlplane.links.handler import NotDone
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream
from controlplane.virt_api.streams import audit, serve
from controlplane.virt_handler.streams.guest_sockets import StreamRefused
from tests.controlplane.virt_api.served import Json
from tests.controlplane.virt_api.streams.stage import Streaming
from tests.controlplane.virt_api.subresources.stage import a_vmi
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams.stage import GUEST, is_closed


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
ONE_INTERFACE = {"spec": {"domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}}}


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
        ("portforward/22", {**a_vmi(), **ONE_INTERFACE}, 400, "no network interface in its status (yet)"),
        ("portforward/22", a_vmi(), 400, "it has no network: add an interface to its spec"),
        ("portforward/22", a_vmi("Scheduled"), 400, "it has no network: add an interface to its spec"),
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


@pytest.mark.parametrize(
    ("path", "vmi", "field"),
    [
        ("console", {**a_vmi(), **DEVICES["console"]}, "spec.domain.devices.autoattachSerialConsole"),
        ("vnc", {**a_vmi(), **DEVICES["vnc"]}, "spec.domain.devices.autoattachGraphicsDevice"),
        ("portforward/22", a_vmi(), "spec.domain.devices.interfaces"),
        ("console", a_vmi("Scheduled"), None),
        ("portforward/22", {**a_vmi(), **ONE_INTERFACE}, None),
    ],
)
async def test_a_refusal_that_waiting_does_not_change_names_the_field(
    stage: Streaming, path: str, vmi: Json, field: str | None
) -> None:
    """All are 400, as upstream, so the code does not tell a client whether to ask again."""
    stage.put_vmi(vmi)
    status = await stage.refused(path)
    assert status["code"] == 400
    assert [cause["field"] for cause in status.get("details", {}).get("causes", ())] == ([field] if field else [])


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


async def test_a_client_that_goes_while_its_stream_is_opened_ends_no_session(stage: Streaming) -> None:
    """It would end another user's."""
    stage.put_vmi()
    waiting, go_on = asyncio.Event(), asyncio.Event()
    plain = stage.sockets.open

    async def wait(opening: object) -> object:
        waiting.set()
        await go_on.wait()
        return await plain(opening)  # type: ignore[arg-type]

    async with stage.stream("console") as former:
        stage.sockets.open = wait  # type: ignore[method-assign,assignment]
        opening = asyncio.create_task(stage.refusal("console"))
        await waiting.wait()
        opening.cancel()
        await asyncio.wait({opening})
        await until(lambda: stage.served.server.streams.by_machine.used_by("ns/web") == 1, "its end in virt-api")  # type: ignore[union-attr]
        go_on.set()
        stage.device.write(b"still")
        assert await former.receive_bytes() == b"still"
