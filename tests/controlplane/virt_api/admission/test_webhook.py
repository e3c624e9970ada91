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
