# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.admission.verdict import Settings
from controlplane.virt_api.admission import webhook as module
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.http.routes import ToHook


def broken() -> Settings:
    raise RuntimeError("secret detail")


def a_review(**request: Any) -> bytes:
    kind = {"group": "kubevirt.io", "version": "v1", "kind": "KubeVirt"}
    body = {"uid": "u1", "kind": kind, "operation": "CREATE", "object": {"metadata": {"name": "x"}}}
    return json.dumps({"request": {**body, **request}}).encode()


def test_a_bug_is_a_clean_refusal_that_is_counted_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    admission = Admission(broken)

    response = json.loads(admission.answer(ToHook("validate"), a_review()).body)["response"]

    assert response["uid"] == "u1"
    assert response["allowed"] is False
    assert response["status"]["code"] == 500
    assert "secret detail" not in json.dumps(response)
    assert admission.counters.bugs == 1
    assert "admission failed" in caplog.text


def test_a_bug_on_top_of_an_unreadable_review_is_still_an_answer() -> None:
    admission = Admission(Settings)

    assert admission.answer(ToHook("mutate"), b"\xff\xfe").code == 400
    assert admission.counters.unreadable == 1


def test_refusals_are_counted() -> None:
    admission = Admission(Settings)
    review = a_review(
        kind={"kind": "VirtualMachine"}, object={"kind": "VirtualMachine", "metadata": {"name": "x"}, "spec": {}}
    )

    response = json.loads(admission.answer(ToHook("validate"), review).body)["response"]

    assert response["allowed"] is False
    assert admission.counters.refused == 1
    assert admission.counters.reviews == 1


def test_a_validation_changes_nothing_although_the_object_lacks_defaults() -> None:
    """The API server refuses a validating webhook's answer that has a patch, and with it the object."""
    spec = {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}
    vmi = {"kind": "VirtualMachineInstance", "metadata": {"name": "x", "namespace": "ns"}, "spec": spec}
    review = a_review(kind={"kind": "VirtualMachineInstance"}, object=vmi)
    admission = Admission(Settings)

    validated = json.loads(admission.answer(ToHook("validate"), review).body)["response"]
    mutated = json.loads(admission.answer(ToHook("mutate"), review).body)["response"]

    assert validated == {"uid": "u1", "allowed": True}
    assert mutated["patchType"] == "JSONPatch"


@pytest.mark.parametrize(
    "body",
    [b'{"request": {"uid": "\xff"}}', b'{"request": {"object": ' + b"[" * 100_000, b"{}"],
    ids=["no text", "nested", "no request"],
)
def test_a_bug_that_any_body_meets_is_still_an_answer(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_unused: bytes) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(module, "parse_review", broken)

    assert Admission(Settings).answer(ToHook("mutate"), body).code == 500
