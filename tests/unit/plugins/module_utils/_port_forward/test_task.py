# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_port_forward: waits for the guest, forwards, and says how it was used."""

from __future__ import annotations

import io
import socket
import threading
from contextlib import closing
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    ApiError,
    BadArgument,
    NotFound,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket import WebSocket
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import task
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward.forward import Forward

from .conftest import CUT, ECHO, ONE_LINE, Server, a_free_port


def run(api: Api, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    params = {
        "name": "database", "namespace": "default", "port": ECHO, "local_port": a_free_port(),
        "timeout": 20, "lifetime": 20, "idle_timeout": 1, **options,
    }  # fmt: skip
    return task.run(params, api, check_mode=check_mode, diff=False)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """A client connects as soon as the port is forwarded; returns what it received."""
    received: list[bytes] = []
    wait = Forward.wait

    def used(self: Forward, seconds: float, idle_seconds: float) -> bool:
        with closing(socket.create_connection(self.address, 20)) as client:
            client.sendall(b"line\n")
            try:
                while data := client.recv(100):
                    received.append(data)
            except ConnectionResetError:
                received.append(b"reset")
        return wait(self, seconds, 0.001 * idle_seconds)

    monkeypatch.setattr(Forward, "wait", used)
    return received


def test_it_says_how_it_was_used(api: Api, sent: list[bytes]) -> None:
    port = a_free_port()
    result = run(api, port=ONE_LINE, local_port=port)
    assert sent == [b"line\n"]
    assert result == {
        "changed": False, "local_port": port, "connections": 1, "bytes_to_guest": 5, "bytes_from_guest": 5,
        "ended_by": "idle_timeout", "errors": [],
    }  # fmt: skip


def test_it_fails_if_the_newest_connection_has_failed(api: Api, sent: list[bytes]) -> None:
    with pytest.raises(VirtError, match="port 13 of VirtualMachineInstance default/database ended") as failed:
        run(api, port=CUT)
    assert b"reset" in sent
    assert (failed.value.facts["connections"], failed.value.facts["changed"]) == (1, False)


def test_a_machine_that_starts_is_asked_again(server: Server, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "RETRY_SECONDS", 0.001)
    server.refusals = [(400, "it is not running (yet)"), (500, "nothing listens there")]
    assert run(api)["connections"] == 0


def test_until_then_the_local_port_refuses_connections(
    server: Server, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, seen = a_free_port(), []

    def look(_seconds: float) -> None:
        with closing(socket.socket()) as client:
            seen.append(client.connect_ex(("127.0.0.1", port)))

    monkeypatch.setattr(task.time, "sleep", look)
    server.refusals = [(500, "nothing listens there")]
    run(api, local_port=port)
    assert seen == [111]  # ECONNREFUSED


def test_a_guest_that_does_not_listen_in_time_is_an_error(server: Server, api: Api) -> None:
    server.refusals = [(500, "nothing listens there")] * 2
    with pytest.raises(TimedOut, match=r"nothing listens there; have .*; waited for 1 s"):
        run(api, timeout=1)


@pytest.mark.parametrize(("code", "kind"), [(403, ApiError), (404, NotFound), (409, ApiError)])
def test_what_does_not_change_by_itself_is_not_waited_for(
    server: Server, api: Api, code: int, kind: type[ApiError]
) -> None:
    server.refusals = [(code, "no")]
    with pytest.raises(kind) as refused:
        run(api)
    assert refused.value.status == code


def test_a_machine_whose_spec_has_no_network_is_not_waited_for(server: Server, api: Api) -> None:
    server.refusals = [(400, "it has no network: add an interface to its spec")]
    server.wrong_field = "spec.domain.devices.interfaces"
    with pytest.raises(ApiError) as refused:
        run(api)
    attempt = "cannot connect to port 7 of VirtualMachineInstance default/database"
    why = "spec.domain.devices.interfaces: it has no network: add an interface to its spec"
    assert refused.value.message == f"{attempt}: {why}"


def test_check_mode_opens_nothing(server: Server, api: Api) -> None:
    assert run(api, check_mode=True)["changed"] is False
    assert server.opened == 0


@pytest.mark.parametrize(
    "options",
    [
        {"port": 0},
        {"port": 65536},
        {"local_port": -1},
        {"timeout": 0},
        {"lifetime": 0},
        {"idle_timeout": 0},
        {"name": "../x"},
        {"namespace": "a.b"},
    ],
)
def test_an_option_out_of_range_is_named(api: Api, options: dict[str, Any]) -> None:
    with pytest.raises(BadArgument, match=next(iter(options))):
        run(api, **options)


def test_the_local_port_is_the_guests_unless_it_is_given(api: Api) -> None:
    assert run(api, check_mode=True, local_port=None)["local_port"] == ECHO


def test_threads_end_with_the_task(api: Api, sent: list[bytes]) -> None:
    before = threading.active_count()
    run(api, port=ONE_LINE)
    assert sent
    assert threading.active_count() == before


def test_a_guest_that_ends_the_first_connection_at_once_is_forwarded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended:
        def sendall(self, _data: bytes) -> None:
            raise ConnectionResetError

        def close(self) -> None:
            pass

    ended: Any = Ended()
    stream = WebSocket(ended, io.BufferedReader(io.BytesIO()))
    monkeypatch.setattr(task, "open_port", lambda *_unused: stream)
    assert run(api)["connections"] == 0
