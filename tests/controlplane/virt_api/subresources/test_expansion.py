# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expand-spec and expand-vm-spec answer, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.admission.review import render_validation
from controlplane.api.admission.verdict import Request, Settings, review
from controlplane.kube.certificates import KeyPair
from controlplane.virt_api.concurrency import Judges
from controlplane.virt_api.http.response import Answer
from controlplane.virt_api.subresources import dispatch as subresources
from controlplane.virt_api.subresources.expansion import expand_given
from tests.controlplane.api import golden
from tests.controlplane.virt_api.served import CLIENTS, USER, Served, a_client_pair, serving

VM = golden.load("vm-full")
TYPED = golden.changed(VM, "spec/instancetype", {"name": "u1.medium"})
ROOT = {"name": "containerdisk", "dataVolume": {"name": "root"}}
ON_A_DATA_VOLUME = golden.changed(golden.load("vm-cirros"), "spec/template/spec/volumes/0", ROOT)
LEAVING = golden.changed(VM, "metadata/deletionTimestamp", "2026-11-24T08:00:00Z")
STORED = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/full"
BASE = "/apis/subresources.kubevirt.io/v1/namespaces/default"
DEEP = "[" * 70 + "]" * 70


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as made:
        yield made


@pytest.fixture
def proxy(served: Served) -> KeyPair:
    return a_client_pair(served.proxy_authority, usage=CLIENTS)


def given(body: bytes, namespace: str = "default", *, has_cdi: bool | None = True) -> tuple[int, Any]:
    answer = expand_given(body, namespace, Settings(serves_data_volumes=has_cdi))
    return answer.code, json.loads(answer.body)


@pytest.mark.parametrize("namespace", ["default", "", None, ...])
def test_a_good_machine_is_answered_as_it_came(namespace: Any) -> None:
    vm = golden.changed(VM, "metadata/namespace", namespace)

    assert given(json.dumps(vm).encode()) == (200, vm)


@pytest.mark.parametrize(
    ("vm", "field", "words"),
    [
        (golden.changed(VM, "metadata/namespace", "other"), "metadata.namespace", "must be empty or default"),
        (golden.changed(VM, "kind", "VirtualMachineInstance"), "kind", "must be VirtualMachine"),
        (TYPED, "spec.instancetype", "not built in this version"),
        (golden.changed(VM, "spec/template/spec/domain/cpu/cores", 0), "spec.template.spec.domain.cpu.cores", "from 1"),
        (golden.changed(VM, "spec/runStrategy", ...), "spec.runStrategy", "is required"),
        (golden.changed(VM, "spec/tempalte", {}), "spec.tempalte", "did you mean template"),
        (golden.changed(VM, "apiVersion", "apps/v1"), "apiVersion", "must be kubevirt.io/v1"),
        (golden.changed(VM, "apiVersion", ...), "apiVersion", "must be kubevirt.io/v1"),
        (golden.changed(VM, "metadata/name", "UPPER_case"), "metadata.name", "must be a DNS subdomain"),
        (golden.changed(VM, "metadata/labels", {"app": 5}), "metadata", "labels"),
        (golden.changed(VM, "metadata", "full"), "metadata", "must be an object"),
        (golden.changed(LEAVING, "metadata/name", "UPPER_case"), "metadata.name", "must be a DNS subdomain"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(vm: Any, field: str, words: str) -> None:
    code, status = given(json.dumps(vm).encode())

    assert (code, status["reason"]) == (400, "BadRequest")
    assert [one["message"] for one in status["details"]["causes"] if one["field"] == field and words in one["message"]]


@pytest.mark.parametrize("api_version", ["kubevirt.io/v1", "kubevirt.io/v1alpha3"])
def test_every_version_that_is_served_is_answered(api_version: str) -> None:
    assert given(json.dumps(golden.changed(VM, "apiVersion", api_version)).encode())[0] == 200


@pytest.mark.parametrize(
    ("has_cdi", "code", "words"),
    [(True, 200, ""), (False, 400, "install CDI"), (None, 503, "does not know yet")],
)
def test_data_volumes_are_judged_by_whether_the_cluster_has_them(has_cdi: bool | None, code: int, words: str) -> None:
    found, answer = given(json.dumps(ON_A_DATA_VOLUME).encode(), has_cdi=has_cdi)

    assert found == code
    assert words in answer.get("message", "")


@pytest.mark.parametrize("vm", [TYPED, ON_A_DATA_VOLUME, golden.changed(VM, "metadata/name", "UPPER_case"), VM])
def test_it_is_said_as_a_review_of_its_creation_says_it(vm: Any) -> None:
    request = Request(operation="CREATE", kind="VirtualMachine", user="somebody", uid="u", obj=vm)
    verdict = review(request, Settings(serves_data_volumes=False))

    _code, answer = given(json.dumps(vm).encode(), has_cdi=False)

    said = render_validation(request, verdict)["response"].get("status", {})
    assert answer.get("message") == said.get("message")
    assert answer.get("details") == said.get("details")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "must be a VirtualMachine as JSON"),
        (b"null", "must be a VirtualMachine as JSON, got null"),
        (b"[]", "must be a VirtualMachine as JSON, got []"),
        (b"kind: VirtualMachine", "must be a VirtualMachine as JSON"),
        (b"\xff", "must be a VirtualMachine as JSON"),
        (f'{{"spec": {DEEP}}}'.encode(), "nesting deeper than 64"),
        (b"[" * 60_000, "must be a VirtualMachine as JSON"),
    ],
)
def test_what_is_no_machine_is_refused(body: bytes, words: str) -> None:
    code, status = given(body)

    assert code == 400
    assert words in status["message"]
    assert len(status["message"]) < 500


async def test_a_stored_machine_is_answered_as_it_is(served: Served, proxy: KeyPair) -> None:
    stored = served.api.put(STORED, VM)

    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert (code, body) == (200, stored)


async def test_a_stored_machine_of_an_instance_type_is_not_shown_as_if_it_had_none(
    served: Served, proxy: KeyPair
) -> None:
    served.api.put(STORED, TYPED)

    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert code == 501
    assert "spec.instancetype" in body["message"]


async def test_a_machine_that_is_not_there_is_not_found(served: Served, proxy: KeyPair) -> None:
    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert (code, body["reason"]) == (404, "NotFound")


async def test_a_machine_is_judged_for_whom_the_review_allows_it(served: Served, proxy: KeyPair) -> None:
    code, body = await served.call(
        "PUT", f"{BASE}/expand-vm-spec", pair=proxy, headers=USER, body=json.dumps(VM).encode()
    )

    assert (code, body) == (200, VM)
    (asked,) = served.reviews
    assert asked["resourceAttributes"] == {
        "verb": "update",
        "group": "subresources.kubevirt.io",
        "version": "v1",
        "resource": "expand-vm-spec",
        "namespace": "default",
    }


async def test_whom_the_review_does_not_allow_it_hears_nothing_of_the_machine(tmp_path: Path) -> None:
    async with serving(tmp_path, allowed=False) as served:
        proxy = a_client_pair(served.proxy_authority, usage=CLIENTS)
        code, body = await served.call("PUT", f"{BASE}/expand-vm-spec", pair=proxy, headers=USER, body=b"[]")

    assert code == 403
    assert 'cannot update resource "expand-vm-spec" in API group' in body["message"]


class Line:
    """Machines that are judged one after the other, when the test says so; and who asked for a turn."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.let = threading.Semaphore(0)
        self.begun: list[str] = []
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        plain = Judges.judge

        def judged(body: bytes, namespace: str, settings: Settings) -> Answer:
            self.begun.append(namespace)
            assert self.let.acquire(timeout=20)
            return expand_given(body, namespace, settings)

        async def judge(judges: Judges, peer: str, verdict: Any) -> Any:
            self.asked.put_nowait(peer)
            return await plain(judges, peer, verdict)

        patch.setattr(subresources, "expand_given", judged)
        patch.setattr(Judges, "judge", judge)


async def test_many_machines_of_one_namespace_keep_no_other_waiting_and_no_review(
    served: Served, proxy: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is judged at a time, by a thread that is not the reviews', and then it is the other namespace's turn."""
    line, body = Line(monkeypatch), json.dumps(golden.changed(VM, "metadata/namespace", ...)).encode()

    def put(namespace: str) -> asyncio.Task[tuple[int, Any]]:
        path = BASE.removesuffix("default") + namespace + "/expand-vm-spec"
        return asyncio.create_task(served.call("PUT", path, pair=proxy, headers=USER, body=body))

    async with asyncio.timeout(20):
        flood = [put("greedy") for _unused in range(12)]
        assert {await line.asked.get() for _each in flood} == {"greedy"}
        theirs = put("modest")
        assert await line.asked.get() == "modest"
        line.let.release(2)
        assert (await theirs)[0] == 200
        assert line.begun[:2] == ["greedy", "modest"]
        line.let.release(11)
        assert {code for code, _unused in await asyncio.gather(*flood)} == {200}
