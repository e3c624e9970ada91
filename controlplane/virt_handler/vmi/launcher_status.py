# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher status after a look at its domain, and when a failed start is final. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from controlplane.api.objects.pod import abbreviate
from controlplane.domain.observed import Observed
from controlplane.domain.state import Life, State
from controlplane.virt_handler.vmi.migration_source import is_sending
from controlplane.virt_handler.vmi.user_requests import user_pause_after
from controlplane.virt_handler.vmi.world import Failure, LauncherStatus

START_ATTEMPTS = 3
START_SECONDS = 2.0
"""A failing start is retried at least this often and this long: a lack of memory may be temporary, but a user waits for
the reason."""
KILL_AFTER = 2
"""Requests to destroy the domain before QEMU is killed."""
_UNREADABLE = State(Life.UNKNOWN, "unknown")


def is_guest_up(state: State | None) -> bool:
    """Tell whether a guest runs. A QEMU that is still starting does not count: its start may fail."""
    return state is not None and state.life.is_up and not state.is_starting


def status_after_look(status: LauncherStatus, state: State | None, observed: Observed | None) -> LauncherStatus:
    """Return the status after a look at the domain. state: None if libvirt has no domain of this VMI."""
    if state is not None and observed is None:
        state = _UNREADABLE
    is_running = state is not None and state.life.is_going_on
    return replace(
        status,
        is_connected=True,
        state=state,
        observed=observed,
        has_run=status.has_run or is_guest_up(state),
        is_paused_by_user=user_pause_after(status.is_paused_by_user, state),
        has_gone_on=status.has_gone_on or (is_running and not is_sending(status)),
        trouble="",
    )


def is_to_be_killed(status: LauncherStatus) -> bool:
    """Tell whether QEMU ignored the requests to end."""
    return status.destroys >= KILL_AFTER


@dataclass(slots=True)
class FailedStarts:
    """The failed starts of one launcher, in monotonic seconds."""

    at: list[float] = field(default_factory=list)

    def note(self, message: str, now: float, *, is_final: bool) -> Failure | None:
        """Count a failed start; return the failure if it is final.

        is_final: libvirt refuses the domain itself, so another attempt would fail as well.
        """
        if is_final:
            return Failure("InvalidDomain", abbreviate(message))
        self.at.append(now)
        is_over = len(self.at) >= START_ATTEMPTS and now - self.at[0] >= START_SECONDS
        return Failure("StartFailed", abbreviate(message)) if is_over else None
