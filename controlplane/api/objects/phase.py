# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phases of a VirtualMachineInstance: one table for all writers. Final phases are absorbing."""

from __future__ import annotations

from kubevirt_api.phases import FAILED, FINAL, PENDING, RUNNING, SCHEDULED, SCHEDULING, SUCCEEDED, UNKNOWN

__all__ = [
    "AFTER_HAND_OVER",
    "BEFORE_HAND_OVER",
    "FAILED",
    "FINAL",
    "NEVER_STARTED",
    "PENDING",
    "RUNNING",
    "SCHEDULED",
    "SCHEDULING",
    "SUCCEEDED",
    "TRANSITIONS",
    "UNKNOWN",
    "is_final",
    "may_move",
]

BEFORE_HAND_OVER = frozenset({"", PENDING, SCHEDULING})
"""virt-controller owns the phase."""
AFTER_HAND_OVER = frozenset({SCHEDULED, RUNNING, UNKNOWN})
"""virt-handler owns the phase; virt-controller may only declare Failed when the Pod is gone for certain."""

NEVER_STARTED = frozenset({"InvalidDomain", "InvalidSpec", "StartFailed"})
"""Reasons with which virt-handler fails a run before its guest existed. Its launcher has nothing to wait for."""

TRANSITIONS: dict[str, frozenset[str]] = {
    "": frozenset({PENDING, SCHEDULING, FAILED}),
    PENDING: frozenset({SCHEDULING, FAILED}),
    SCHEDULING: frozenset({SCHEDULED, FAILED}),
    SCHEDULED: frozenset({RUNNING, SUCCEEDED, FAILED, UNKNOWN}),
    RUNNING: frozenset({SUCCEEDED, FAILED, UNKNOWN}),
    UNKNOWN: frozenset({RUNNING, SUCCEEDED, FAILED}),
    SUCCEEDED: frozenset(),
    FAILED: frozenset(),
}


def is_final(phase: str) -> bool:
    """Tell whether the run is over."""
    return phase in FINAL


def may_move(before: str, after: str) -> bool:
    """Tell whether a phase may follow another; staying is no move and always allowed."""
    return before == after or after in TRANSITIONS.get(before, frozenset())
