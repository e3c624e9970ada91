# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phases of a VirtualMachineInstance, and their transitions: one table for all writers. Final phases never change.

An unknown phase (of a newer version or of upstream) has no owner here: our components leave the object alone.
"""

from __future__ import annotations

from enum import Enum, auto

from kubevirt_api.phases import FAILED, FINAL, PENDING, RUNNING, SCHEDULED, SCHEDULING, SUCCEEDED, UNKNOWN

__all__ = [
    "AFTER_HAND_OVER",
    "BEFORE_HAND_OVER",
    "FAILED",
    "FINAL",
    "LAUNCHER_WAITS",
    "OWNERS",
    "PENDING",
    "RUNNING",
    "SCHEDULED",
    "SCHEDULING",
    "SUCCEEDED",
    "TRANSITIONS",
    "UNKNOWN",
    "Owner",
    "is_alive",
    "is_allowed_transition",
    "is_final",
    "is_known_phase",
]


class Owner(Enum):
    """Who moves an instance out of a phase."""

    CONTROLLER = auto()
    HANDLER = auto()
    """virt-handler of the node in status.nodeName. virt-controller says only what became of the Pod."""
    NOBODY = auto()


OWNERS: dict[str, Owner] = {
    "": Owner.CONTROLLER,
    PENDING: Owner.CONTROLLER,
    SCHEDULING: Owner.CONTROLLER,
    SCHEDULED: Owner.HANDLER,
    RUNNING: Owner.HANDLER,
    UNKNOWN: Owner.HANDLER,
    SUCCEEDED: Owner.NOBODY,
    FAILED: Owner.NOBODY,
}
BEFORE_HAND_OVER = frozenset(phase for phase, owner in OWNERS.items() if owner is Owner.CONTROLLER)
AFTER_HAND_OVER = frozenset(phase for phase, owner in OWNERS.items() if owner is Owner.HANDLER)

LAUNCHER_WAITS = frozenset({"InvalidDomain", "InvalidSpec", "StartFailed", "GuestLost"})
"""Reasons with which virt-handler fails a run whose launcher cannot know that it is over, and would wait for ever:
before its guest existed, or when libvirt in it does not know the guest any more."""

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


def is_alive(phase: str) -> bool:
    """Tell whether the run is not over, so a guest may run.

    The phase Unknown counts as alive: a node that does not answer may still run the guest. So does the empty phase of a
    new instance.
    """
    return not is_final(phase)


def is_known_phase(phase: str) -> bool:
    """Tell whether this version knows the phase."""
    return phase in OWNERS


def is_allowed_transition(before: str, after: str) -> bool:
    """Tell whether one phase may follow another. The same phase is always allowed."""
    return before == after or after in TRANSITIONS.get(before, frozenset())
