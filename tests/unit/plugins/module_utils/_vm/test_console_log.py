# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which log has what a guest printed, and which of its lines are the guest's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from aiohttp import web
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Forbidden
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import console_log

from tests.support import http_server

RUNNING = {"running": {}}
ENDED = {"terminated": {"exitCode": 1}}
PULLS = {"waiting": {"reason": "ErrImagePull"}}
OF_THE_LAUNCHER = '{"time":"t","level":"info","component":"virt-launcher","event":"prepared"}\n'


def a_vmi(**pods_and_nodes: str) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "default", "uid": "u"}
    return {"metadata": metadata, "status": {"activePods": pods_and_nodes, "nodeName": "node-1"}}


def a_pod(name: str, created: str = "1", /, *, first: str | None = None, **states: dict[str, Any]) -> dict[str, Any]:
    """Return a Pod with the states of its containers by name; first: the name of an init container."""
    statuses = [{"name": container.replace("_", "-"), "state": state} for container, state in states.items()]
    own, others = [item for item in statuses if item["name"] == first], [s for s in statuses if s["name"] != first]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created},
        "spec": {
            "initContainers": [{"name": item["name"]} for item in own],
            "containers": [{"name": item["name"]} for item in others],
        },
        "status": {"initContainerStatuses": own, "containerStatuses": others},
    }


LOGS = {
    "a/compute": f"{OF_THE_LAUNCHER}booting\n\x1b[1mlogin: \n",
    "b/compute": "b\n",
    "c/guest-console-log": "upstream\n",
}


@pytest.fixture
def api() -> Iterator[Api]:
    async def log(request: web.Request) -> web.Response:
        if request.query["container"] == "secret":
            return web.json_response({"kind": "Status", "code": 403, "message": "no"}, status=403)
        return web.Response(text=LOGS[f"{request.match_info['pod']}/{request.query['container']}"])

    routes = {"/api/v1/namespaces/default/pods/{pod}/log": log}
    with http_server.serving(routes) as url, closing(Api(Transport(Endpoint(server=url)))) as api:
        yield api


@pytest.mark.parametrize(
    ("vmi", "pods", "lines"),
    [
        pytest.param(a_vmi(a="node-1"), [a_pod("a", compute=RUNNING)], ["booting", "login: "], id="of the run"),
        pytest.param(
            a_vmi(b="node-2", a="node-1"),
            [a_pod("b", "2", compute=RUNNING), a_pod("a", "1", compute=RUNNING)],
            ["booting", "login: "],
            id="of the source of a migration",
        ),
        pytest.param(
            a_vmi(),
            [a_pod("a", "1", compute=ENDED), a_pod("b", "2", compute=ENDED), a_pod("x", "3", compute=PULLS)],
            ["b"],
            id="of the newest attempt that has run",
        ),
        pytest.param(
            a_vmi(c="node-1"),
            [a_pod("c", first="guest-console-log", guest_console_log=RUNNING, compute=RUNNING)],
            ["upstream"],
            id="of upstream",
        ),
        pytest.param(
            a_vmi(c="node-1"),
            [a_pod("c", guest_console_log=RUNNING, compute=RUNNING)],
            ["upstream"],
            id="of older upstream",
        ),
        pytest.param(a_vmi(a="node-1"), [a_pod("a", compute=PULLS)], [], id="of none that has run"),
        pytest.param(a_vmi(), [], [], id="of no Pod"),
    ],
)
def test_the_lines_are_the_guests(api: Api, vmi: dict[str, Any], pods: list[dict[str, Any]], lines: list[str]) -> None:
    assert console_log.read(api, vmi, pods) == lines


def test_only_the_last_lines_are_returned(api: Api) -> None:
    assert console_log.read(api, a_vmi(), [a_pod("a", compute=RUNNING)], lines=1) == ["login: "]


def test_a_refusal_is_the_apis(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_log, "CONTAINERS", ("secret",))
    with pytest.raises(Forbidden, match="cannot read the log of Pod a"):
        console_log.read(api, a_vmi(), [a_pod("a", secret=RUNNING)])


def test_a_server_that_ignores_the_limit_is_read_no_further(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOGS, "a/compute", "x" * 1023 + "\n" + ("y" * 1023 + "\n") * 8000)
    lines = console_log.read(api, a_vmi(), [a_pod("a", compute=RUNNING)])
    assert (lines[0][0], len(lines)) == ("x", 65)
