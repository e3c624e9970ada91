# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance of a VM as the VM's status describes it, for users who may not read instances."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import Forbidden
from ..kubevirt_api import phases, printable_statuses
from . import kinds

_PHASES = {
    printable_statuses.RUNNING: phases.RUNNING,
    printable_statuses.PAUSED: phases.RUNNING,
    printable_statuses.MIGRATING: phases.RUNNING,
    printable_statuses.STOPPING: phases.RUNNING,
    printable_statuses.TERMINATING: phases.RUNNING,
    printable_statuses.STOPPED: phases.SUCCEEDED,
    printable_statuses.CRASH_LOOP_BACK_OFF: phases.FAILED,
}
"""The phase of the instance, by printableStatus. With the others it is being started."""
_LEAVING = (printable_statuses.STOPPING, printable_statuses.TERMINATING)

Object = dict[str, Any]


def read(api: Api, vm: Object, namespace: str, name: str, api_version: str = "") -> Object | None:
    """Return the instance of a VM, or what the VM says of it if the user may not read instances."""
    try:
        return api.get(kinds.VMI.resource(namespace, api_version), name)
    except Forbidden:
        return described(vm)


def described(vm: Object) -> Object | None:
    """Return the instance that a VM's status describes, without a UID; None if there is none. Pure."""
    status = vm.get("status") or {}
    if not status.get("created"):
        return None
    printable = status.get("printableStatus") or ""
    is_stop_requested = any(request.get("action") == "Stop" for request in status.get("stateChangeRequests") or ())
    metadata: Object = {key: vm["metadata"][key] for key in ("name", "namespace") if key in vm["metadata"]}
    if printable in _LEAVING or is_stop_requested:
        metadata["deletionTimestamp"] = "unknown"
    phase = _PHASES.get(printable, phases.SCHEDULING)
    return {"metadata": metadata, "status": {"phase": phase, "conditions": status.get("conditions") or []}}
