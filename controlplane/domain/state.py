# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A domain's state, and the outcome of a run. Pure; libvirt's numbers stay in hypervisor/.

virt-handler derives the VMI's phase from it, virt-launcher its exit code, so both agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Outcome = Literal["Succeeded", "Failed"]
POWER_BUTTON_SECONDS = 5.0
"""Interval between two presses of the power button: some guests miss it while they boot. See docs/adr/0018."""


class Life(Enum):
    """libvirt's states of a domain."""

    RUNNING = "running"
    BLOCKED = "blocked"
    PAUSED = "paused"
    SHUTTING_DOWN = "shutting down"
    SHUT_OFF = "shut off"
    CRASHED = "crashed"
    SUSPENDED = "suspended"
    UNKNOWN = "unknown"

    @property
    def is_up(self) -> bool:
        """A QEMU process exists and belongs to this run."""
        return self in _UP

    @property
    def is_going_on(self) -> bool:
        """The guest's processors run, or wait for its devices."""
        return self in (Life.RUNNING, Life.BLOCKED)


_UP = frozenset({Life.RUNNING, Life.BLOCKED, Life.PAUSED, Life.SHUTTING_DOWN, Life.SUSPENDED})


@dataclass(frozen=True, slots=True)
class State:
    """A domain's state and libvirt's reason in lower case, e.g. shut off, "crashed"; "unknown" if it is not known
    here."""

    life: Life
    reason: str

    @property
    def is_starting(self) -> bool:
        """QEMU is starting: it may still refuse its command line, and no guest has run."""
        return self.life is Life.PAUSED and self.reason == "starting_up"


_AFTER_PAUSE = frozenset({"unpaused", "migrated", "migration_canceled"})
"""libvirt's reasons why a guest runs that was paused before. They stay for the whole run."""


def was_resumed(before: State | None, after: State | None) -> bool:
    """Tell whether a guest runs after a pause. before: its state at the last look; None at the first.

    At the first look libvirt's reason decides: the guest may have arrived by a migration a moment ago.
    """
    if after is None or not after.life.is_going_on:
        return False
    if before is None:
        return after.reason in _AFTER_PAUSE
    return before.life is Life.PAUSED and not before.is_starting


def explain_crash(state: State, cause: str) -> State:
    """Add the cause of a crash from earlier events: after QEMU has ended, libvirt's state only has "crashed".

    cause: "panicked", "watchdog", or "" when it is unknown.
    """
    # A guest that survives its panic (kdump) still runs, or shuts down in order.
    is_crash = state.life is Life.SHUT_OFF and state.reason == "crashed"
    return State(Life.CRASHED, cause) if is_crash and cause else state


def derive_outcome(state: State, *, is_acpi_expected: bool) -> Outcome | None:
    """Return how a run ended; None while it lasts, has not begun, or continues on another node.

    is_acpi_expected: the guest had ACPI and a grace period above zero, so a domain that had to be destroyed ignored the
    shutdown. The rules are upstream's (kubevirt v1.9), so VMs fail and succeed as users know it.
    """
    if state.life is Life.CRASHED:
        return "Failed"
    if state.life is Life.PAUSED and state.reason == "postcopy_failed":
        return "Failed"
    if state.life is not Life.SHUT_OFF:
        return None
    if state.reason == "crashed":
        return "Failed"
    if state.reason == "destroyed":
        return "Failed" if is_acpi_expected else "Succeeded"
    return "Succeeded" if state.reason in ("shutdown", "saved", "from_snapshot") else None
