# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import Any

import pytest

from controlplane.api.admission.verdict import Settings
from controlplane.virt_api.admission import webhook as module
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.concurrency import WorkerThreads
from controlplane.virt_api.http.routes import WebhookRoute


def broken() -> Settings:
    raise RuntimeError("secret detail")


def a_review(**request: Any) -> bytes:
    kind = {"group": "kubevirt.io", "version": "v1", "kind": "KubeVirt"}
    body = {"uid": "u1", "kind": kind, "operation": "CREATE", "object": {"metadata": {"name": "x"}}}
    return json.dumps({"request": {**body, **request}}).encode()


def test_a_bug_causes_a_denial_without_details(caplog: pytest.LogCaptureFixture) -> None:
    admission = Admission(broken)

    response = json.loads(admission.answer(WebhookRoute("validate"), a_review()).body)["response"]

    assert response["uid"] == "u1"
    assert response["allowed"] is False
    assert response["status"]["code"] == 500
    assert "secret detail" not in json.dumps(response)
    assert "admission failed" in caplog.text


def test_an_unreadable_review_is_a_bad_request() -> None:
    assert Admission(Settings).answer(WebhookRoute("mutate"), b"\xff\xfe").code == 400


def test_an_invalid_object_is_denied() -> None:
    review = a_review(
        kind={"kind": "VirtualMachine"}, object={"kind": "VirtualMachine", "metadata": {"name": "x"}, "spec": {}}
    )

    response = json.loads(Admission(Settings).answer(WebhookRoute("validate"), review).body)["response"]

    assert response["allowed"] is False


def test_a_validation_sets_no_defaults() -> None:
    """The API server refuses the object when a validating webhook responds with a patch."""
    spec = {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}
    vmi = {"kind": "VirtualMachineInstance", "metadata": {"name": "x", "namespace": "ns"}, "spec": spec}
    review = a_review(kind={"kind": "VirtualMachineInstance"}, object=vmi)
    admission = Admission(Settings)

    validated = json.loads(admission.answer(WebhookRoute("validate"), review).body)["response"]
    mutated = json.loads(admission.answer(WebhookRoute("mutate"), review).body)["response"]

    assert validated == {"uid": "u1", "allowed": True}
    assert mutated["patchType"] == "JSONPatch"


@pytest.mark.parametrize(
    "body",
    [b'{"request": {"uid": "\xff"}}', b'{"request": {"object": ' + b"[" * 100_000, b"{}"],
    ids=["no text", "nested", "no request"],
)
def test_a_bug_with_an_unreadable_review_is_a_500(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_unused: bytes) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(module, "parse_review", broken)

    assert Admission(Settings).answer(WebhookRoute("mutate"), body).code == 500


def a_large_review() -> bytes:
    """A review of 450 KB: a VM with very many node selector terms. Only the last is invalid."""
    values = ["a"] * 1000
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]} for _unused in range(120)]
    terms.append({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a b"]}]})
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    body = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}, "affinity": affinity}}}
    vm = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": body}
    kind = {"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachine"}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "userInfo": {"username": "a"}, "object": vm}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


async def test_the_review_of_a_large_object_does_not_stop_the_event_loop() -> None:
    """A thread reviews the object while the loop continues. A review on the loop is measured for comparison."""
    body, admission, threads = a_large_review(), Admission(Settings), WorkerThreads(1)
    assert 450_000 <= len(body) < 600_000
    pauses = []
    began = time.perf_counter()
    assert admission.answer(WebhookRoute("validate"), body).code == 200
    duration = time.perf_counter() - began
    running = asyncio.create_task(threads.run(partial(admission.answer, WebhookRoute("validate"), body)))
    while not running.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        pauses.append(time.perf_counter() - began)

    review = json.loads((await running).body)
    assert review["response"]["allowed"] is False
    assert "nodeSelectorTerms[120]" in json.dumps(review)
    assert len(pauses) > 10, "on the loop it would be one"
    assert max(pauses) < duration / 2, "no single step holds the interpreter"
    threads.close()
