# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of guest agents: operating system, users, file systems. Guests without an agent get no request."""

from __future__ import annotations

from typing import Any

from ..._client.api import Api
from ..._client.errors import ApiError, NotFound, VirtError
from ..._client.parallel import in_parallel
from ...kubevirt_api import condition_types
from ...kubevirt_api.predicates import is_condition_true, is_running
from .. import kinds

SUBRESOURCES = {"info": "guestosinfo", "users": "userlist", "filesystems": "filesystemlist"}
"""Key in the result to subresource."""
_LISTS = ("users", "filesystems")
_UNSUPPORTED = (404, 405, 501)
_NO_AGENT = 500
"""HTTP status for an agent that does not respond or does not exist."""

Object = dict[str, Any]


def reports(api: Api, instances: list[Object]) -> list[Object]:
    """Return for each instance its name and namespace, and the report of its agent or the reason why it has none."""
    with_agent = [vmi for vmi in instances if unavailable(vmi) is None]
    agent_reports = (
        in_parallel(api, len(with_agent), lambda thread_api, index: _ask(thread_api, with_agent[index]))
        if with_agent
        else []
    )
    by_uid = {vmi["metadata"].get("uid"): report for vmi, report in zip(with_agent, agent_reports, strict=True)}
    results = []
    for vmi in instances:
        metadata = vmi["metadata"]
        result = {"name": metadata["name"], "namespace": metadata["namespace"], "agent": False}
        report = by_uid.get(metadata.get("uid"))
        if isinstance(report, VirtError):
            raise report
        results.append({**result, **(report or {"reason": unavailable(vmi)})})
    return results


def unavailable(vmi: Object) -> str | None:
    """Return why the guest has no agent, None if it has one. Pure."""
    if not is_running(vmi):
        return f"the guest is not running (phase {(vmi.get('status') or {}).get('phase') or 'not reported'})"
    if not is_condition_true(vmi, condition_types.AGENT_CONNECTED):
        return "no guest agent is connected; install and start qemu-guest-agent in the guest"
    return None


def _ask(api: Api, vmi: Object) -> Object:
    name, namespace = vmi["metadata"]["name"], vmi["metadata"]["namespace"]
    resource = kinds.operations(kinds.VMI, namespace)
    report: Object = {"agent": True}
    for key, subresource in SUBRESOURCES.items():
        try:
            response = api.ask(resource, name, subresource)
        except ApiError as error:
            if error.status == _NO_AGENT or (isinstance(error, NotFound) and error.facts.get("server_reason")):
                return {"reason": error.message}  # agent or instance has ended meanwhile
            if error.status in _UNSUPPORTED:
                raise VirtError(
                    f"cannot ask the guest of {resource.title(name)}: the control plane of this cluster does not serve"
                    f" {subresource}, or virt-api does not run ({error.message}); leave out guest=true"
                ) from error
            raise
        report[key] = response.get("items") or [] if key in _LISTS else response
    return report
