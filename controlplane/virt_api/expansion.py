# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""expand-spec, expand-vm-spec: a machine with everything in it that it refers to. Instance types are not built, so that
is the machine itself; what refers to one is refused by name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from controlplane.api.admission.kinds import vm as machine
from controlplane.api.admission.problem import Problem, excerpt
from controlplane.api.admission.review import MAX_CAUSES, UnreadableReviewError, check_growth
from controlplane.api.admission.validate.check import check_object
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import VIRTUAL_MACHINE, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.engine.errors import NotFound
from controlplane.kube.client import Client
from controlplane.virt_api.answer import Answer, Json, document, failure, not_found

KIND = VIRTUAL_MACHINE.kind.lower()
REFERENCES = ("instancetype", "preference")


async def expand(client: Client, key: Key) -> Answer:
    """Answer with a machine as it is stored, once the caller's rights are known. ApiError."""
    try:
        vm = await client.get(VIRTUAL_MACHINE, key)
    except NotFound:
        return not_found(KIND, key.name)
    referred = [name for name in REFERENCES if (vm.get("spec") or {}).get(name)]
    if referred:
        return failure(501, f"{KIND} {key}: spec.{referred[0]} is not implemented by this control plane")
    return document(vm)


def expand_given(body: bytes, namespace: str, configuration: KubeVirtConfiguration) -> Answer:
    """Answer with the machine in a body, if it is a good one of that namespace. Pure."""
    try:
        vm = msgspec.json.decode(body)
        check_growth(vm)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return failure(400, f"the body must be a VirtualMachine as JSON: {error}")
    except UnreadableReviewError as error:
        return failure(400, str(error))
    if not isinstance(vm, dict):
        return failure(400, f"the body must be a VirtualMachine as JSON, got {excerpt(vm)}")
    problems = _misplaced(vm, namespace) or check_object(vm, configuration, kind=VirtualMachine, rules=machine.RULES)
    return _refused(problems) if problems else document(vm)


def _misplaced(vm: Json, namespace: str) -> list[Problem]:
    metadata = vm.get("metadata")
    named: Any = metadata.get("namespace") if isinstance(metadata, dict) else None
    found = []
    if vm.get("kind") != VIRTUAL_MACHINE.kind:
        found.append(Problem("kind", f"must be {VIRTUAL_MACHINE.kind}, got {excerpt(vm.get('kind'))}"))
    if named not in (None, "", namespace):
        text = f"must be empty or {namespace}, as in the path, got {excerpt(named)}"
        found.append(Problem("metadata.namespace", text))
    return found


def _refused(problems: list[Problem]) -> Answer:
    shown = problems[:MAX_CAUSES]
    causes = [{"field": one.path, "message": one.message, "reason": one.reason} for one in shown]
    return failure(400, "; ".join(map(str, shown)), details={"causes": causes})
