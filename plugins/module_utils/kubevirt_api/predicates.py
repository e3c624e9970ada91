# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates on the status of objects, as plain JSON values, e.g. is_running(vmi). Missing fields are no errors.

The desired state is in desired.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import condition_types, phases

Object = Mapping[str, Any]


def condition(obj: Object, kind: str) -> Object | None:
    """Return the condition of this type, None without it."""
    listed = (obj.get("status") or {}).get("conditions") or ()
    return next((candidate for candidate in listed if candidate.get("type") == kind), None)


def is_condition_true(obj: Object, kind: str) -> bool:
    """Tell whether the object has the condition and it is True."""
    current = condition(obj, kind)
    return current is not None and current.get("status") == "True"


def phase(vmi: Object) -> str:
    """Return the phase of a VirtualMachineInstance, "" before the control plane has set one."""
    return (vmi.get("status") or {}).get("phase") or ""


def is_running(vmi: Object) -> bool:
    """Tell whether the guest runs (or is paused)."""
    return phase(vmi) == phases.RUNNING


def is_final(vmi: Object) -> bool:
    """Tell whether the run is over."""
    return phase(vmi) in phases.FINAL


def is_ready(obj: Object) -> bool:
    """Tell whether a VirtualMachine or VirtualMachineInstance is ready."""
    return is_condition_true(obj, condition_types.READY)


def is_up_to_date(vm: Object) -> bool:
    """Tell whether the controller has observed the newest spec of a VirtualMachine."""
    observed = (vm.get("status") or {}).get("desiredGeneration") or 0
    return observed >= ((vm.get("metadata") or {}).get("generation") or 0)


def first_failure(obj: Object) -> tuple[str, str] | None:
    """Return (reason, message) of the most specific failure that keeps an object from running, None without one.

    VirtualMachine: its own failure, or its instance's (those conditions are mirrored).
    VirtualMachineInstance: no node, no image, no Pod, or why the run ended.
    """
    for kind in (condition_types.FAILURE, condition_types.POD_SCHEDULED, condition_types.SYNCHRONIZED):
        current = condition(obj, kind)
        bad = "True" if kind == condition_types.FAILURE else "False"
        if current is not None and current.get("status") == bad:
            return current.get("reason") or kind, current.get("message") or ""
    status = obj.get("status") or {}
    failed = status.get("phase") == phases.FAILED
    ready = condition(obj, condition_types.READY) or {}
    if status.get("reason") or failed:
        return status.get("reason") or phases.FAILED, ready.get("message") or ""
    return None
