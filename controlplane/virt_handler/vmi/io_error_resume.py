# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a guest that an I/O error has paused is let go on: at once, then after ever longer pauses. Pure.

A guest that was let go on is on trial for a while: until it has run so long, the VMI goes on saying that it is paused,
since it mostly meets the same error again within a moment.
"""

from __future__ import annotations

from controlplane.virt_handler.vmi.world import LauncherStatus

FIRST_SECONDS, LAST_SECONDS = 10.0, 300.0
TRIAL_SECONDS = 10.0
FORGET_SECONDS = 600.0
"""A guest that was let go on so long ago meets another error, not the same."""


def seconds_until_next(status: LauncherStatus, now: float) -> float:
    """Tell when a guest paused by an I/O error may go on; 0 or less: now."""
    if status.resume_asked_at is None:
        return 0.0
    pause = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(max(status.resumes - 1, 0), 30))
    return pause - (now - status.resume_asked_at)


def seconds_on_trial(status: LauncherStatus, now: float) -> float:
    """Tell how long a guest that runs is on trial yet; 0 or less: it is not."""
    return 0.0 if status.resume_asked_at is None else TRIAL_SECONDS - (now - status.resume_asked_at)


def count_next(status: LauncherStatus, now: float) -> int:
    """Count the resume that is asked for now."""
    asked = status.resume_asked_at
    return 1 if asked is None or now - asked > FORGET_SECONDS else status.resumes + 1
