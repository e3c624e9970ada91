# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.launch_plan import AgentProbe
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import (
    AgentSilent,
    Disconnected,
    HypervisorError,
    InvalidDomain,
    TimedOut,
    WrongState,
)
from controlplane.virt_launcher import probe
from controlplane.virt_launcher.probes import server as module
from controlplane.virt_launcher.probes.server import ProbeResult, ProbeServer, run_probe

RUNNING = State(Life.RUNNING, "booted")
LIVENESS = AgentProbe("livenessProbe", ("/bin/alive",), 30)
READINESS = replace(LIVENESS, name="readinessProbe")
STARTUP = replace(LIVENESS, name="startupProbe", command=())
PING = replace(LIVENESS, command=())


@dataclass
class FakeGuest:
    """A guest whose agent runs commands. Each ends after so many status queries with this exit code."""

    life: State = RUNNING
    looks: int = 1
    exit_code: int = 0
    failure: HypervisorError | None = None
    is_silent: bool = False
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    speaks_again: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)

    async def state(self) -> State:
        return self.life

    async def ask_agent(self, command: str, _unused: int) -> str:
        if self.failure is not None:
            raise self.failure
        self.is_asked.set()
        if self.is_silent:
            await self.speaks_again.wait()
        request = json.loads(command)
        self.asked.append(request["execute"])
        return json.dumps({"return": self._answer(request["execute"])})

    def _answer(self, verb: str) -> dict[str, Any]:
        if verb == "guest-exec":
            return {"pid": 5}
        if verb == "guest-ping":
            return {}
        self.looks -= 1
        return {"exited": True, "exitcode": self.exit_code} if self.looks <= 0 else {"exited": False}


async def answered(question: AgentProbe, guest: FakeGuest | None) -> ProbeResult:
    async def find() -> Any:
        return guest

    return await run_probe(question, find)


async def test_a_successful_command_passes() -> None:
    guest = FakeGuest(looks=3)

    assert await answered(LIVENESS, guest) == ProbeResult(0, "the command ended with exit code 0")
    assert guest.asked == ["guest-exec", *["guest-exec-status"] * 3]


@pytest.mark.parametrize(("exit_code", "code"), [(7, 7), (256, 255)], ids=["its exit code", "256 does not pass"])
async def test_a_failed_command_fails(exit_code: int, code: int) -> None:
    result = await answered(LIVENESS, FakeGuest(exit_code=exit_code))
    assert result == ProbeResult(code, f"the command ended with exit code {exit_code}")


async def test_an_agent_that_answers_a_ping_passes() -> None:
    guest = FakeGuest()

    assert await answered(PING, guest) == ProbeResult(0, "the guest agent responds")
    assert guest.asked == ["guest-ping"]


@pytest.mark.parametrize(
    "guest",
    [
        pytest.param({"failure": AgentSilent("the agent\nis not connected")}, id="no agent"),
        pytest.param({"failure": HypervisorError("no such file")}, id="the agent refuses"),
        pytest.param({"is_silent": True}, id="no answer"),
        pytest.param({"looks": 10**9}, id="the command does not end"),
    ],
)
@pytest.mark.parametrize("question", [LIVENESS, READINESS], ids=["liveness", "readiness"])
async def test_a_guest_that_does_not_answer_fails(question: AgentProbe, guest: dict[str, Any]) -> None:
    answer = await answered(replace(question, timeout_seconds=0.02), FakeGuest(**guest))  # type: ignore[arg-type]

    assert answer.code == 1
    assert answer.text.isprintable()


@pytest.mark.parametrize(
    "guest",
    [
        pytest.param({"life": State(Life.SHUT_OFF, "unknown")}, id="defined, not started"),
        pytest.param({"life": State(Life.PAUSED, "user")}, id="paused"),
        pytest.param({"failure": Disconnected("libvirtd went away")}, id="libvirtd is gone"),
        pytest.param({"failure": TimedOut("no answer")}, id="libvirtd hangs"),
        pytest.param({"failure": WrongState("not running")}, id="it has just ended"),
        pytest.param({"failure": InvalidDomain("no channel for an agent")}, id="it has no channel"),
    ],
)
async def test_a_guest_that_cannot_be_asked_is_live_and_not_ready(guest: dict[str, Any]) -> None:
    assert (await answered(LIVENESS, FakeGuest(**guest))).code == 0
    assert (await answered(READINESS, FakeGuest(**guest))).code == 1


@pytest.mark.parametrize(
    ("guest", "code"),
    [
        pytest.param(None, 1, id="no domain"),
        pytest.param(FakeGuest(life=State(Life.SHUT_OFF, "unknown")), 1, id="it is to be made"),
        pytest.param(FakeGuest(life=State(Life.PAUSED, "migration")), 1, id="it comes"),
        pytest.param(FakeGuest(), 0, id="it goes on"),
        pytest.param(FakeGuest(failure=AgentSilent("no agent")), 0, id="it goes on and has no agent"),
    ],
)
async def test_a_startup_probe_passes_once_the_guest_runs(guest: FakeGuest | None, code: int) -> None:
    assert (await answered(STARTUP, guest)).code == code
    assert guest is None or not guest.asked


async def test_without_a_domain_a_guest_is_live_and_not_ready() -> None:
    assert (await answered(LIVENESS, None)).code == 0
    assert (await answered(READINESS, None)).code == 1


async def test_without_a_connection_to_libvirtd_a_guest_is_live_and_not_ready() -> None:
    async def find() -> Any:
        raise Disconnected("nobody listens")

    assert (await run_probe(LIVENESS, find)).code == 0
    assert (await run_probe(READINESS, find)).code == 1


async def test_a_hung_libvirtd_does_not_fail_the_liveness_probe() -> None:
    async def find() -> Any:
        await asyncio.Event().wait()

    assert (await run_probe(replace(LIVENESS, timeout_seconds=0.01), find)).code == 0  # type: ignore[arg-type]


async def exchange(server: ProbeServer, path: Path, data: bytes) -> str:
    async with await asyncio.start_unix_server(server.serve, str(path), limit=64):
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(data)
        answer = await reader.read()
        writer.close()
    return answer.decode()


def a_server(guest: FakeGuest) -> ProbeServer:
    async def find() -> Any:
        return guest

    return ProbeServer({"livenessProbe": LIVENESS}, find)


async def test_the_probe_command_gets_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "s")
    async with await asyncio.start_unix_server(a_server(FakeGuest(exit_code=4)).serve, path, limit=64):
        code = await asyncio.to_thread(probe.main, ["livenessProbe"], path)

    assert code == 4
    assert capsys.readouterr().out.strip() == "the command ended with exit code 4"


async def test_an_unknown_probe_is_refused(tmp_path: Path) -> None:
    assert (await exchange(a_server(FakeGuest()), tmp_path / "s", b"readinessProbe\n")).startswith("2 ")


@pytest.mark.parametrize("data", [b"x" * 5000, "\u2620".encode() * 40 + b"\n", b"\xff\xfe\n"])
async def test_an_invalid_name_is_refused(data: bytes, tmp_path: Path) -> None:
    assert (await exchange(a_server(FakeGuest()), tmp_path / "s", data))[:2] in ("", "2 ")


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    task = asyncio.create_task(module.serve_probes("uid", (LIVENESS,), path))
    async with asyncio.timeout(5):
        while True:
            with contextlib.suppress(OSError):
                assert (await asyncio.to_thread(probe.ask, "other", path)).startswith("2 ")
                break
            await asyncio.sleep(0.001)
    task.cancel()


async def test_a_silent_client_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NAME_SECONDS", 0.01)
    path = str(tmp_path / "s")
    async with await asyncio.start_unix_server(a_server(FakeGuest()).serve, path, limit=64), asyncio.timeout(5):
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        writer.close()


async def test_the_agent_gets_one_probe_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    guest = FakeGuest(is_silent=True)
    async with await asyncio.start_unix_server(a_server(guest).serve, path, limit=64):
        first = asyncio.create_task(asyncio.to_thread(probe.main, ["livenessProbe"], path))
        await guest.is_asked.wait()
        guest.is_asked.clear()
        second = asyncio.create_task(asyncio.to_thread(probe.ask, "livenessProbe", path))
        asked_again = asyncio.create_task(guest.is_asked.wait())
        await asyncio.wait((second, asked_again), return_when=asyncio.FIRST_COMPLETED)
        asked_again.cancel()
        guest.speaks_again.set()

        assert await first == 0

    assert await second == "0 the previous probe is still running\n"
    assert guest.asked == ["guest-exec", "guest-exec-status"]


async def test_a_startup_probe_waits_for_a_migrating_guest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failure would be an Event, and the kubelet sends only a few per Pod."""
    path, requests = str(tmp_path / "s"), 0

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        assert await reader.readline() == b"startupProbe\n"
        writer.write(b"1 the guest is paused\n" if requests < 3 else b"0 the guest goes on\n")
        writer.close()

    monkeypatch.setattr(probe, "PAUSE_SECONDS", 0.001)
    async with await asyncio.start_unix_server(speak, path):
        assert await asyncio.to_thread(probe.main, ["startupProbe"], path) == 0

    assert requests == 3
    assert capsys.readouterr().out.strip() == "the guest goes on"


class Libvirtd:
    """Accepts connections. The first so many break at their first request."""

    def __init__(self, lost: int) -> None:
        self.lost, self.opened, self.closed = lost, 0, 0

    async def open_connection(self, _unused: str, **_others: object) -> Libvirtd:
        self.opened += 1
        return self

    async def guest(self, _unused: str) -> FakeGuest:
        if self.opened <= self.lost:
            raise Disconnected("libvirtd went away")
        return FakeGuest()

    async def close(self) -> None:
        self.closed += 1


async def test_a_lost_connection_is_reopened_and_a_working_one_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    libvirtd = Libvirtd(lost=1)
    monkeypatch.setattr(module, "open_connection", libvirtd.open_connection)
    link = module._Connector("uid", "uri")

    codes = [(await run_probe(READINESS, link.guest)).code for _unused in range(3)]

    assert codes == [1, 0, 0]
    assert (libvirtd.opened, libvirtd.closed) == (2, 1)
    await link.close()
    assert libvirtd.closed == 2


@pytest.mark.parametrize(("name", "code"), [("livenessProbe", 0), ("readinessProbe", 1)])
def test_a_launcher_that_does_not_answer_is_live_and_not_ready(name: str, code: int, tmp_path: Path) -> None:
    assert probe.main([name], str(tmp_path / "nobody")) == code
