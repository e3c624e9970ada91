# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reads and writes of start, stop and restart, on a fake API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from controlplane.tls.certificates import KeyPair
from controlplane.virt_api import concurrency
from controlplane.virt_api.subresources.dispatch import MAX_CONCURRENT
from tests.controlplane.virt_api.served import CLIENTS, USER, Json, Served, a_client_pair, serving

VM = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/web"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"
RUNNING = {"spec": {"domain": {"devices": {}}}, "status": {"phase": "Running"}}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
def proxy(served: Served) -> KeyPair:
    return a_client_pair(served.proxy_authority, usage=CLIENTS)


def a_vm(strategy: str) -> Json:
    return {"spec": {"runStrategy": strategy, "template": {"spec": {"domain": {"devices": {}}}}}}


async def ask(served: Served, proxy: KeyPair, verb: str, body: bytes = b"") -> tuple[int, Any]:
    path = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachines/web/{verb}"
    return await served.call("PUT", path, pair=proxy, headers=USER, body=body)


async def test_the_vmi_is_read_after_the_vm(served: Served, proxy: KeyPair) -> None:
    """A write is bound to the VM's version; a VMI that was read before the VM could be outdated."""
    served.api.put(VM, a_vm("Manual"))

    assert (await ask(served, proxy, "start"))[0] == 202

    reads = [path for method, path, *_unused in served.api.seen if method == "GET"]
    assert reads == [VM, VMI]


async def test_a_deleted_vmi_repeats_the_decision(served: Served, proxy: KeyPair) -> None:
    """The VMI is deleted between read and write: then there is nothing to stop."""
    served.api.put(VM, a_vm("Manual"))
    served.api.put(VMI, RUNNING)
    patch = served.api._patch

    def patch_later(path: str, body: Json) -> Any:
        served.api._patch = patch  # type: ignore[method-assign]
        served.api.drop(VMI)
        return patch(path, body)

    served.api._patch = patch_later  # type: ignore[method-assign]

    code, status = await ask(served, proxy, "stop", b'{"gracePeriod": 0}')

    assert (code, "not running" in status["message"]) == (409, True)
    assert "status" not in served.api.objects[VM]


@pytest.mark.parametrize(
    ("verb", "strategy", "is_running", "options", "writes"),
    [
        ("start", "Halted", False, b"", 1),
        ("start", "Manual", False, b"", 1),
        ("start", "Halted", False, b'"paused": true, ', 1),
        ("stop", "Always", True, b'"gracePeriod": 0, ', 2),
        ("stop", "Manual", True, b"", 1),
        ("restart", "Always", True, b'"gracePeriodSeconds": 0, ', 2),
    ],
    ids=["the switch", "the queue", "paused", "stop at once", "stop", "restart at once"],
)
async def test_all_writes_of_a_dry_run_are_dry_runs(
    served: Served, proxy: KeyPair, verb: str, strategy: str, is_running: bool, options: bytes, writes: int
) -> None:
    served.api.put(VM, a_vm(strategy))
    if is_running:
        served.api.put(VMI, RUNNING)

    assert (await ask(served, proxy, verb, b"{" + options + b'"dryRun": ["All"]}'))[0] == 202

    written = [path for method, path, *_unused in served.api.seen if method == "PATCH"]
    assert len(written) == writes
    assert [path for path in written if "dryRun=All" not in path] == []


async def test_a_request_without_a_slot_is_told_to_retry(
    served: Served, proxy: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "WAIT_SECONDS", 0.0)
    served.api.put(VM, a_vm("Halted"))
    assert served.server is not None
    limit = served.server.subresources.limit
    async with AsyncExitStack() as stack:
        for _unused in range(MAX_CONCURRENT):
            await stack.enter_async_context(limit.slot())
        code, status = await ask(served, proxy, "start")
    assert (code, status["reason"]) == (429, "TooManyRequests")
    assert served.api.seen == []
