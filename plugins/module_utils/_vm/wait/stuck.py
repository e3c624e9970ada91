# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of a machine that do not end by themselves, which end a wait early (fail_fast). Pure.

A state must last, because caches lag, kubelets try again, and an object may be created a moment after the machine.
"""

from __future__ import annotations

from typing import Any

from ..._client.errors import REASON_LIMIT, cut
from ..._client.waiter import Stuck
from ...kubevirt_api import condition_types
from ...kubevirt_api.predicates import condition

SECONDS = 15.0
"""How long a state must last. A kubelet tries to pull an image again after 10 seconds."""
ALL_THE_SAME = "(fail_fast=false waits all the same)"

_CLAIM = ("claim", "create it, or correct the name in the volume")
_IMAGE = ("image", "correct the name of the image, or have the registry serve it to the node")
_STATES = {
    condition_types.FAILED_PVC_NOT_FOUND: _CLAIM,
    condition_types.ERR_IMAGE_PULL: _IMAGE,
    condition_types.IMAGE_PULL_BACK_OFF: _IMAGE,
    "ErrImageNeverPull": _IMAGE,
    "InvalidImageName": _IMAGE,
}
"""Reasons of an instance's condition Synchronized and of waiting containers: key and remedy. Equal keys alternate."""

Object = dict[str, Any]


def of_machine(obj: Object) -> Stuck | None:
    """Return the lasting state of an instance, or of a VM, which shows the conditions of its instance."""
    synchronized = condition(obj, condition_types.SYNCHRONIZED)
    if synchronized is None or synchronized.get("status") != "False":
        return None
    return _stuck(synchronized.get("reason"), synchronized.get("message"))


def of_pod(pod: Object) -> Stuck | None:
    """Return the lasting state of a Pod whose container cannot start."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [(container.get("state") or {}).get("waiting") or {} for container in containers]
    return next(filter(None, (_stuck(state.get("reason"), state.get("message")) for state in waiting)), None)


def is_unschedulable(obj: Object) -> bool:
    """Tell whether the scheduler finds no node, for an instance, a VM or a Pod."""
    scheduled = condition(obj, condition_types.POD_SCHEDULED) or {}
    return (scheduled.get("status"), scheduled.get("reason")) == ("False", condition_types.UNSCHEDULABLE)


def on_no_node(reason: str) -> Stuck:
    """Return the state of a machine that no node can take."""
    return Stuck("node", f"{reason} {ALL_THE_SAME}", SECONDS)


def _stuck(reason: str | None, message: str | None) -> Stuck | None:
    if reason not in _STATES:
        return None
    key, remedy = _STATES[reason]
    text = cut(f"{reason}: {message}" if message else reason, REASON_LIMIT)
    return Stuck(key, f"{text}; {remedy} {ALL_THE_SAME}", SECONDS)
