# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a step for one object."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._client.errors import VirtError

RESTART_REQUIRED = "RestartRequired"
"""As in condition_types, which a task without a change does not load."""
_FRESH_STARTS = ("create", "start", "stop", "restart")
"""After these requests the next instance has the whole declaration."""

Object = dict[str, Any]


class Outcome(NamedTuple):
    """The outcome for one object."""

    changed: bool
    method: str | None = None
    """The last request that changed something: create, apply, patch, replace, delete, or the name of an operation."""
    before: Object | None = None
    after: Object | None = None
    """The newest version of the object, None if it is gone."""
    old_instance_uid: str | None = None
    """UID of the instance that a restart replaces."""
    change: Any = None
    """The wait.rollout.Change that the machines of a pool still have to take over, or None."""
    warning: str = ""
    """A warning for the user, "" for none."""


def is_observed(vm: Object) -> bool:
    """Tell whether the status of a VM is that of its newest spec, where that matters: for a VM with an instance.

    virt-controller writes desiredGeneration and the conditions together. Older KubeVirt does not report it.
    """
    status = vm.get("status") or {}
    if not status.get("created") or "desiredGeneration" not in status:
        return True
    return bool(status["desiredGeneration"] >= (vm["metadata"].get("generation") or 0))


def restart_required(outcome: Outcome) -> bool | None:
    """Tell whether changes of a VM wait for its restart; None if that is not known."""
    vm = outcome.after
    if vm is None:
        return None
    if outcome.method in _FRESH_STARTS:
        return False
    if not is_observed(vm):
        return None
    conditions = (vm.get("status") or {}).get("conditions") or ()
    return any((item.get("type"), item.get("status")) == (RESTART_REQUIRED, "True") for item in conditions)


class Interrupted(Exception):
    """A step changed something and then failed."""

    def __init__(self, done: Outcome, error: VirtError) -> None:
        super().__init__(error.message)
        self.done = done
        self.error = error
