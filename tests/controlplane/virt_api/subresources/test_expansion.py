# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""expand-spec and expand-vm-spec: responses and refusals."""

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
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.http.response import Response
from controlplane.virt_api.subresources import dispatch
from controlplane.virt_api.subresources.expansion import expand_body
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
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
def proxy(served: Served) -> KeyPair:
    return a_client_pair(served.proxy_authority, usage=CLIENTS)


def expand(body: bytes, namespace: str = "default", *, has_cdi: bool | None = True) -> tuple[int, Any]:
    response = expand_body(body, namespace, Settings(serves_data_volumes=has_cdi))
    return response.code, json.loads(response.body)


@pytest.mark.parametrize("namespace", ["default", "", None, ...])
def test_a_valid_vm_is_returned_unchanged(namespace: Any) -> None:
    vm = golden.changed(VM, "metadata/namespace", namespace)

    assert expand(json.dumps(vm).encode()) == (200, vm)


def test_a_reference_that_a_volume_would_have_to_name_is_left_out() -> None:
    inferred = {"inferFromVolume": "a", "inferFromVolumeFailurePolicy": "Ignore"}

    assert expand(json.dumps(golden.changed(VM, "spec/preference", inferred)).encode()) == (200, VM)


@pytest.mark.parametrize(
    ("vm", "field", "words"),
    [
        (golden.changed(VM, "metadata/namespace", "other"), "metadata.namespace", "must be empty or default"),
        (golden.changed(VM, "kind", "VirtualMachineInstance"), "kind", "must be VirtualMachine"),
        (TYPED, "spec.instancetype", "not built in this version"),
        (golden.changed(VM, "spec/tempalte", {}), "spec.tempalte", "did you mean template"),
        (golden.changed(VM, "apiVersion", "apps/v1"), "apiVersion", "must be kubevirt.io/v1"),
        (golden.changed(VM, "metadata/name", "UPPER_case"), "metadata.name", "must be a DNS subdomain"),
        (golden.changed(VM, "metadata/labels", {"app": 5}), "metadata", "labels"),
        (golden.changed(LEAVING, "metadata/name", "UPPER_case"), "metadata.name", "must be a DNS subdomain"),
    ],
)
def test_an_invalid_field_is_named(vm: Any, field: str, words: str) -> None:
    code, status = expand(json.dumps(vm).encode())

    assert (code, status["reason"]) == (400, "BadRequest")
    causes = status["details"]["causes"]
    assert any(cause["field"] == field and words in cause["message"] for cause in causes)


@pytest.mark.parametrize("api_version", ["kubevirt.io/v1", "kubevirt.io/v1alpha3"])
def test_every_served_version_is_accepted(api_version: str) -> None:
    assert expand(json.dumps(golden.changed(VM, "apiVersion", api_version)).encode())[0] == 200


@pytest.mark.parametrize(
    ("has_cdi", "code", "words"),
    [(True, 200, ""), (False, 400, "install CDI"), (None, 503, "does not know yet")],
)
def test_data_volumes_need_cdi(has_cdi: bool | None, code: int, words: str) -> None:
    actual, status = expand(json.dumps(ON_A_DATA_VOLUME).encode(), has_cdi=has_cdi)

    assert actual == code
    assert words in status.get("message", "")


@pytest.mark.parametrize("vm", [TYPED, ON_A_DATA_VOLUME, golden.changed(VM, "metadata/name", "UPPER_case"), VM])
def test_messages_are_those_of_a_review_of_the_creation(vm: Any) -> None:
    request = Request(operation="CREATE", kind="VirtualMachine", user="somebody", uid="u", obj=vm)
    verdict = review(request, Settings(serves_data_volumes=False))

    _code, status = expand(json.dumps(vm).encode(), has_cdi=False)

    expected = render_validation(request, verdict)["response"].get("status", {})
    assert status.get("message") == expected.get("message")
    assert status.get("details") == expected.get("details")


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
def test_a_body_that_is_no_vm_is_refused(body: bytes, words: str) -> None:
    code, status = expand(body)

    assert code == 400
    assert words in status["message"]
    assert len(status["message"]) < 500


async def test_a_stored_vm_is_returned_unchanged(served: Served, proxy: KeyPair) -> None:
    stored = served.api.put(STORED, VM)

    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert (code, body) == (200, stored)


async def test_a_stored_vm_with_an_instance_type_is_refused(served: Served, proxy: KeyPair) -> None:
    served.api.put(STORED, TYPED)

    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert code == 501
    assert "spec.instancetype" in body["message"]


async def test_a_missing_vm_is_404(served: Served, proxy: KeyPair) -> None:
    code, body = await served.call("GET", f"{BASE}/virtualmachines/full/expand-spec", pair=proxy, headers=USER)

    assert (code, body["reason"]) == (404, "NotFound")


async def test_an_authorized_user_may_expand_a_vm(served: Served, proxy: KeyPair) -> None:
    code, body = await served.call(
        "PUT", f"{BASE}/expand-vm-spec", pair=proxy, headers=USER, body=json.dumps(VM).encode()
    )

    assert (code, body) == (200, VM)
    (access_review,) = served.reviews
    assert access_review["resourceAttributes"] == {
        "verb": "update",
        "group": "subresources.kubevirt.io",
        "version": "v1",
        "resource": "expand-vm-spec",
        "namespace": "default",
    }


async def test_an_unauthorized_user_is_refused_before_the_body_is_read(tmp_path: Path) -> None:
    async with serving(tmp_path, allowed=False) as served:
        proxy = a_client_pair(served.proxy_authority, usage=CLIENTS)
        code, body = await served.call("PUT", f"{BASE}/expand-vm-spec", pair=proxy, headers=USER, body=b"[]")

    assert code == 403
    assert 'cannot update resource "expand-vm-spec" in API group' in body["message"]


async def test_reviews_are_answered_while_a_vm_is_expanded(
    served: Served, proxy: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VMs to expand have a thread of their own."""
    started, may_end = threading.Event(), threading.Event()

    def wait(body: bytes, namespace: str, settings: Settings) -> Response:
        started.set()
        assert may_end.wait(20)
        return expand_body(body, namespace, settings)

    monkeypatch.setattr(dispatch, "expand_body", wait)
    path, body = f"{BASE}/expand-vm-spec", json.dumps(VM).encode()
    expanding = asyncio.create_task(served.call("PUT", path, pair=proxy, headers=USER, body=body))
    assert await asyncio.to_thread(started.wait, 20)
    assert (await served.call("POST", "/virtualmachines-validate", body=b"{}"))[0] == 400
    may_end.set()
    assert (await expanding)[0] == 200
