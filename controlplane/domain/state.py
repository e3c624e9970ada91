# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a domain as we speak of it, and what the end of it means. Pure; libvirt's numbers stay in hypervisor/.

virt-handler derives the VMI's phase from it, virt-launcher its exit code; so both always tell the same story.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Outcome = Literal["Succeeded", "Failed"]


class Life(Enum):
    """What a domain does."""

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
        """The guest's processors are at work, or wait for its devices."""
        return self in (Life.RUNNING, Life.BLOCKED)


_UP = frozenset({Life.RUNNING, Life.BLOCKED, Life.PAUSED, Life.SHUTTING_DOWN, Life.SUSPENDED})


@dataclass(frozen=True, slots=True)
class State:
    """What a domain does, and libvirt's reason in lower case, e.g. shut off, "crashed"; "unknown" if none fits."""

    life: Life
    reason: str

    @property
    def is_starting(self) -> bool:
        """QEMU is being started: it may yet refuse its command line, and no guest has run."""
        return self.life is Life.PAUSED and self.reason == "starting_up"


def explain_crash(state: State, cause: str) -> State:
    """Say why a guest has crashed, where that was heard before: once its QEMU is gone, libvirt knows that it has only.

    cause: "panicked", "watchdog"; "" when nothing was heard.
    """
    is_crash = state.life is Life.SHUT_OFF and state.reason == "crashed"
    return State(Life.CRASHED, cause) if is_crash and cause else state


def derive_outcome(state: State, *, is_acpi_expected: bool) -> Outcome | None:
    """Say how a run ended; None while it goes on, has not begun, or went on elsewhere.

    is_acpi_expected: the guest had ACPI and a grace period above zero, so a domain that had to be destroyed did
    not obey. The rows are those of upstream (kubevirt v1.9), so that VMs fail and succeed as users know it.
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
