# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a guest that an I/O error paused is resumed: at once, then after growing pauses. Pure.

A resumed guest is on trial for TRIAL_SECONDS: the VMI stays Paused until then, because most guests get the same error
again at once.
"""

from __future__ import annotations

from controlplane.virt_handler.vmi.world import LauncherStatus

FIRST_SECONDS, LAST_SECONDS = 10.0, 300.0
TRIAL_SECONDS = 10.0
FORGET_SECONDS = 600.0
"""An I/O error this long after the last resume is a new one, not the same."""


def seconds_until_next(status: LauncherStatus, now: float) -> float:
    """Return the seconds until a guest that an I/O error paused is resumed; 0 or less: now."""
    if status.resume_asked_at is None:
        return 0.0
    pause = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(max(status.resumes - 1, 0), 30))
    return pause - (now - status.resume_asked_at)


def seconds_on_trial(status: LauncherStatus, now: float) -> float:
    """Return for how many seconds a running guest is still on trial; 0 or less: it is not."""
    return 0.0 if status.resume_asked_at is None else TRIAL_SECONDS - (now - status.resume_asked_at)


def count_next(status: LauncherStatus, now: float) -> int:
    """Return the number of the resume that is requested now."""
    asked_at = status.resume_asked_at
    return 1 if asked_at is None or now - asked_at > FORGET_SECONDS else status.resumes + 1
