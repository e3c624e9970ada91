# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a launcher's status follows from what libvirt says of its domain, and when a start has failed for good. Pure."""

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
"""A start that fails is tried at least so often and so long: a lack of memory may pass. A user waits for the reason."""
KILL_AFTER = 2
"""Requests to end QEMU before it is killed."""
_UNREADABLE = State(Life.UNKNOWN, "unknown")


def is_guest_up(state: State | None) -> bool:
    """Tell whether a guest runs. A QEMU that is still starting counts as none: its start may fail."""
    return state is not None and state.life.is_up and not state.is_starting


def status_after_look(status: LauncherStatus, state: State | None, observed: Observed | None) -> LauncherStatus:
    """Return the status after a look at the domain. state: None when libvirt knows none of this VMI."""
    if state is not None and observed is None:
        state = _UNREADABLE
    runs = state is not None and state.life.is_going_on
    return replace(
        status,
        is_connected=True,
        state=state,
        observed=observed,
        has_run=status.has_run or is_guest_up(state),
        is_paused_by_user=user_pause_after(status.is_paused_by_user, state),
        has_gone_on=status.has_gone_on or (runs and not is_sending(status)),
        trouble="",
    )


def is_to_be_killed(status: LauncherStatus) -> bool:
    """Tell whether QEMU did not end by itself when it was told to."""
    return status.destroys >= KILL_AFTER


@dataclass(slots=True)
class FailedStarts:
    """The failed starts of one launcher, by their monotonic seconds."""

    at: list[float] = field(default_factory=list)

    def note(self, message: str, now: float, *, is_final: bool) -> Failure | None:
        """Count a failed start; return the failure if the domain is to be given up.

        is_final: libvirt refuses the domain itself, so another attempt fails in the same way.
        """
        if is_final:
            return Failure("InvalidDomain", abbreviate(message))
        self.at.append(now)
        is_over = len(self.at) >= START_ATTEMPTS and now - self.at[0] >= START_SECONDS
        return Failure("StartFailed", abbreviate(message)) if is_over else None
