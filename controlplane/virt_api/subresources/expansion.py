# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""expand-spec, expand-vm-spec: a VM with everything that it refers to.

Instance types are not implemented, so that is the VM itself. A VM that refers to an instance type is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from kubevirt_api import names

from controlplane.api.admission.problem import Problem, excerpt
from controlplane.api.admission.review import UnreadableReviewError, check_growth, render_validation
from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from controlplane.api.objects.resources import VIRTUAL_MACHINE, Key
from controlplane.engine.errors import NotFound
from controlplane.kube.client import Client
from controlplane.virt_api.http.response import Json, Response, document, failure, not_found

KIND = VIRTUAL_MACHINE.kind.lower()
REFERENCES = ("instancetype", "preference")
API_VERSIONS = tuple(f"{names.GROUP}/{version}" for version in (names.VERSION, names.OLD_VERSION))


async def expand(client: Client, key: Key) -> Response:
    """Respond with a stored VM to an authorized caller. Raises ApiError."""
    try:
        vm = await client.get(VIRTUAL_MACHINE, key)
    except NotFound:
        return not_found(KIND, key.name)
    references = [name for name in REFERENCES if (vm.get("spec") or {}).get(name)]
    if references:
        return failure(501, f"{KIND} {key}: spec.{references[0]} is not implemented by this control plane")
    return document(vm)


def expand_body(body: bytes, namespace: str, settings: Settings) -> Response:
    """Respond with the VM in a body if it could be created in that namespace. Pure."""
    try:
        vm = msgspec.json.decode(body)
        check_growth(vm)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return failure(400, f"the body must be a VirtualMachine as JSON: {error}")
    except UnreadableReviewError as error:
        return failure(400, str(error))
    if not isinstance(vm, dict):
        return failure(400, f"the body must be a VirtualMachine as JSON, got {excerpt(vm)}")
    request = _creation(vm, namespace)
    problems = tuple(_type_problems(vm, namespace))
    verdict = Verdict(problems) if problems else review(request, settings)
    return document(_without_references(vm)) if verdict.allowed else _refused(request, verdict)


def _without_references(vm: Json) -> Json:
    """Remove the references of an admitted VM. They are empty, or to be inferred from a volume, if possible."""
    return {**vm, "spec": {name: value for name, value in vm["spec"].items() if name not in REFERENCES}}


def _type_problems(vm: Json, namespace: str) -> Iterator[Problem]:
    metadata = vm.get("metadata")
    own_namespace: Any = metadata.get("namespace") if isinstance(metadata, dict) else None
    if vm.get("apiVersion") not in API_VERSIONS:
        yield Problem("apiVersion", f"must be {names.API_VERSION}, got {excerpt(vm.get('apiVersion'))}")
    if vm.get("kind") != VIRTUAL_MACHINE.kind:
        yield Problem("kind", f"must be {VIRTUAL_MACHINE.kind}, got {excerpt(vm.get('kind'))}")
    if own_namespace not in (None, "", namespace):
        text = f"must be empty or {namespace}, as in the path, got {excerpt(own_namespace)}"
        yield Problem("metadata.namespace", text)


def _creation(vm: Json, namespace: str) -> Request:
    """Return the request that would create the VM in this namespace. It ignores a deletion timestamp."""
    metadata = {} if vm.get("metadata") is None else vm["metadata"]
    if isinstance(metadata, dict):
        metadata = {**metadata, "namespace": namespace, "deletionTimestamp": None}
    obj = {**vm, "metadata": metadata}
    return Request(operation="CREATE", kind=VIRTUAL_MACHINE.kind, user="", uid="", obj=obj)


def _refused(request: Request, verdict: Verdict) -> Response:
    """Respond with the messages of a review, and 400 rather than 422, because the request is not a write."""
    status = render_validation(request, verdict)["response"]["status"]
    is_temporary = verdict.code == 503
    headers = {"Retry-After": "1"} if is_temporary else None
    return failure(503 if is_temporary else 400, status["message"], details=status["details"], headers=headers)
