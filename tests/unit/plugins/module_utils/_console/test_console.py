# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_console against an HTTP server in the API server's place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    ApiError,
    BadArgument,
    NotFound,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport
from ansible_collections.virtops.kubevirt.plugins.module_utils._console import console

from tests.support import http_server

NAMESPACE = "/apis/{}/v1/namespaces/default"
INSTANCE = NAMESPACE.format("kubevirt.io") + "/virtualmachineinstances/web"
CONSOLE = NAMESPACE.format("subresources.kubevirt.io") + "/virtualmachineinstances/web/console"
PODS = "/api/v1/namespaces/default/pods"


class Server:
    """A machine with a console that answers each line, and a log."""

    def __init__(self) -> None:
        self.refusals: list[int] = []
        self.wrong_field = ""
        """Of the machine's spec, which the refusals name."""
        self.opened = 0
        self.has_run = True
        self.queries: list[dict[str, str]] = []
        """The parameters of each opened console."""
        self.containers = ["compute"]
        self.log_queries: list[dict[str, str]] = []
        self.instance: dict[str, Any] | None = {
            "kind": "VirtualMachineInstance",
            "apiVersion": "kubevirt.io/v1",
            "metadata": {"name": "web", "namespace": "default", "uid": "u"},
            "status": {"activePods": {"p": "node-1"}},
        }

    async def console(self, request: web.Request) -> web.StreamResponse:
        if self.refusals:
            code = self.refusals.pop(0)
            status = {"kind": "Status", "status": "Failure", "code": code, "message": "it is not running (yet)"}
            causes = [{"field": self.wrong_field, "message": "it has none"}] if self.wrong_field else []
            return web.json_response({**status, "details": {"name": "web", "causes": causes}}, status=code)
        self.opened += 1
        self.queries.append(dict(request.query))
        stream = web.WebSocketResponse(protocols=("plain.kubevirt.io",))
        await stream.prepare(request)
        if "backlog" in request.query:
            await stream.send_bytes(b"booted\r\nlogin: ")
        async for message in stream:
            if message.type is WSMsgType.BINARY and message.data == b"leave\n":
                await stream.close(code=4001, message=b"taken over by joe")
            elif message.type is WSMsgType.BINARY:
                await stream.send_bytes(b"\x1b[1m" + message.data.replace(b"\n", b"\r\n") + b"# ")
        return stream

    async def read(self, _request: web.Request) -> web.Response:
        if self.instance is None:
            details = {"name": "web", "kind": "virtualmachineinstances"}
            return web.json_response({"kind": "Status", "code": 404, "details": details}, status=404)
        return web.json_response(self.instance)

    async def pods(self, _request: web.Request) -> web.Response:
        pod = {
            "metadata": {"name": "launcher", "namespace": "default", "uid": "p"},
            "spec": {"containers": [{"name": "compute"}]},
            "status": {"containerStatuses": [{"name": "compute", "state": {"running": {}}}] if self.has_run else []},
        }
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod]})

    async def log(self, request: web.Request) -> web.Response:
        self.log_queries.append(dict(request.query))
        return web.Response(body=b"\x1b[1mbooting\r\nlogin:\n")


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    routes = {
        CONSOLE: server.console,
        INSTANCE: server.read,
        PODS: server.pods,
        f"{PODS}/launcher/log": server.log,
    }
    with http_server.serving(routes) as url, closing(Api(Transport(Endpoint(server=url)))) as api:
        yield api


def run(api: Api, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    params = {"name": "web", "namespace": "default", "timeout": 10, **options}
    return console.run(params, api, check_mode=check_mode, diff=False)


def test_steps_run_on_the_console(server: Server, api: Api) -> None:
    result = run(api, steps=[{"send": "uptime", "expect": "^(up.*)$"}, {"expect": "# $"}])
    assert result["changed"] is True
    assert result["steps"] == [{"match": "uptime", "groups": ["uptime"]}, {"match": "# ", "groups": []}]
    assert result["transcript"] == "uptime\n# "
    assert server.opened == 1


@pytest.mark.parametrize(
    ("options", "is_seen"),
    [
        ({"steps": [{"expect": "^booted$"}, {"send": "root", "expect": "root"}]}, True),
        ({"steps": [{"expect": "^booted$", "timeout": 1}], "backlog": False}, False),
        ({"steps": [{"send": "x", "expect": "^booted$", "timeout": 1}]}, False),
    ],
    ids=["a first step that waits", "switched off", "a first step that sends"],
)
def test_what_was_printed_before_is_seen_by_a_first_step_that_only_waits(
    server: Server, api: Api, options: dict[str, Any], is_seen: bool
) -> None:
    if is_seen:
        assert run(api, **options)["steps"] == [{"match": "booted", "groups": []}, {"match": "root", "groups": []}]
    else:
        with pytest.raises(TimedOut):
            run(api, **options)
    assert server.queries == [{"backlog": "true"} if is_seen else {}]


def test_check_mode_opens_no_console(server: Server, api: Api) -> None:
    assert run(api, check_mode=True, steps=[{"send": "reboot"}]) == {"changed": True, "transcript": "", "steps": []}
    assert run(api, check_mode=True, steps=[{"expect": "login:"}])["changed"] is False
    assert server.opened == 0


def test_a_machine_that_starts_is_asked_again(server: Server, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "RETRY_SECONDS", 0.001)
    server.refusals = [400, 400]
    assert run(api, steps=[{"send": "x", "expect": "#"}])["steps"]


def test_a_machine_that_does_not_start_in_time_is_an_error(server: Server, api: Api) -> None:
    server.refusals = [400, 400]
    with pytest.raises(TimedOut, match=r"not running \(yet\); start it \(kubevirt_vm .*; waited for 1 s"):
        run(api, steps=[{"send": "x"}], timeout=1)
    server.refusals = [403]
    with pytest.raises(ApiError) as refused:
        run(api, steps=[{"send": "x"}])
    assert refused.value.status == 403


def test_a_machine_that_is_stopped_says_how_to_start_it(server: Server, api: Api) -> None:
    server.refusals = [404]
    with pytest.raises(NotFound, match=r"start it \(kubevirt_vm with state=started\)"):
        run(api, steps=[{"send": "x"}])


def test_a_machine_whose_spec_has_no_console_is_not_waited_for(server: Server, api: Api) -> None:
    server.refusals, server.wrong_field = [400], "spec.domain.devices.autoattachSerialConsole"
    with pytest.raises(ApiError, match=r"spec\.domain\.devices\.autoattachSerialConsole: it has none$"):
        run(api, steps=[{"send": "x"}])


@pytest.mark.parametrize("status", ["True", "False", None])
def test_a_timeout_says_that_the_machine_is_paused(server: Server, api: Api, status: str | None) -> None:
    """Its console can be opened, and takes what is sent."""
    if server.instance is not None:
        server.instance["status"]["conditions"] = [{"type": "Paused", "status": status}]
    if status is None:
        server.instance = None
    with pytest.raises(TimedOut) as failed:
        run(api, steps=[{"send": "x", "expect": "never", "timeout": 1}])
    reason = "; it is paused; unpause it (kubevirt_vm with state=unpaused)"
    assert (reason in failed.value.message) == (status == "True")


def test_a_session_that_is_taken_over_says_by_whom(server: Server, api: Api) -> None:
    with pytest.raises(VirtError, match="taken over by joe"):
        run(api, steps=[{"send": "leave", "expect": "#"}])
    assert server.opened == 1


def test_the_log_is_read_without_a_session(server: Server, api: Api) -> None:
    result = run(api, log_lines=5, log_since=60)
    assert result == {"changed": False, "transcript": "", "steps": [], "log": ["booting", "login:"]}
    (query,) = server.log_queries
    assert query == {"container": "compute", "tailLines": "55", "sinceSeconds": "60", "limitBytes": "65536"}
    assert server.opened == 0


def test_a_log_of_no_instance_or_no_run(server: Server, api: Api) -> None:
    server.has_run = False
    assert run(api, log_lines=5)["log"] == []
    server.instance = None
    with pytest.raises(NotFound, match="its log is kept with its Pod"):
        run(api, log_lines=5)


def test_a_machine_without_a_serial_console_has_no_log(server: Server, api: Api) -> None:
    if server.instance is not None:
        server.instance["spec"] = {"domain": {"devices": {"autoattachSerialConsole": False}}}
    with pytest.raises(VirtError, match="has no serial console, so there is no log of it; remove autoattach"):
        run(api, log_lines=5)


@pytest.mark.parametrize("options", [{"log_lines": 0}, {"log_since": -1}, {"timeout": 0}, {"name": "../x"}])
def test_an_option_out_of_range_is_named(api: Api, options: dict[str, Any]) -> None:
    with pytest.raises(BadArgument, match=next(iter(options))):
        run(api, **options)
