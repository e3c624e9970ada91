# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agents of guests tell: operating system, users, file systems. Who has none is not asked."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import ApiError, NotFound, VirtError
from .._client.parallel import in_parallel
from ..kubevirt_api import condition_types
from ..kubevirt_api.predicates import is_condition_true, is_running
from . import cluster

QUESTIONS = {"info": "guestosinfo", "users": "userlist", "filesystems": "filesystemlist"}
"""Subresources, by the key of their answers."""
_LISTS = ("users", "filesystems")
_NOT_BUILT = (404, 405, 501)
_LOST = 500
"""How upstream says that the agent does not answer, or that there is none."""

Object = dict[str, Any]


def told(api: Api, instances: list[Object]) -> list[Object]:
    """Return for each instance its name, namespace, whether its agent told something, that, or the reason why not."""
    asked = [vmi for vmi in instances if why_not(vmi) is None]
    answers = in_parallel(api, len(asked), lambda own, index: _ask(own, asked[index])) if asked else []
    by_uid = {vmi["metadata"].get("uid"): answer for vmi, answer in zip(asked, answers, strict=True)}
    found = []
    for vmi in instances:
        metadata = vmi["metadata"]
        one = {"name": metadata["name"], "namespace": metadata["namespace"], "agent": False}
        answer = by_uid.get(metadata.get("uid"))
        if isinstance(answer, VirtError):
            raise answer
        found.append({**one, **(answer or {"reason": why_not(vmi)})})
    return found


def why_not(vmi: Object) -> str | None:
    """Return why there is nobody to ask, None if there is. Pure."""
    if not is_running(vmi):
        return f"the guest is not running (phase {(vmi.get('status') or {}).get('phase') or 'not reported'})"
    if not is_condition_true(vmi, condition_types.AGENT_CONNECTED):
        return "no guest agent is connected; install and start qemu-guest-agent in the guest"
    return None


def _ask(api: Api, vmi: Object) -> Object:
    name, namespace = vmi["metadata"]["name"], vmi["metadata"]["namespace"]
    resource = cluster.operations(cluster.VMI, namespace)
    found: Object = {"agent": True}
    for key, subresource in QUESTIONS.items():
        try:
            answer = api.ask(resource, name, subresource)
        except ApiError as error:
            if error.status == _LOST or (isinstance(error, NotFound) and error.facts.get("server_reason")):
                return {"reason": error.message}  # it went away meanwhile
            if error.status in _NOT_BUILT:
                raise VirtError(
                    f"cannot ask the guest of {resource.title(name)}: the control plane of this cluster does not serve"
                    f" {subresource}, or virt-api does not run ({error.message}); leave out guest=true"
                ) from error
            raise
        found[key] = answer.get("items") or [] if key in _LISTS else answer
    return found
