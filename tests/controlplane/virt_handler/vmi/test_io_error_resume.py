# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.virt_handler.vmi import io_error_resume as resume
from controlplane.virt_handler.vmi.world import LauncherStatus


def test_pauses_between_resumes_double_up_to_five_minutes() -> None:
    waits, status, now = [], LauncherStatus(), 0.0
    for _unused in range(8):
        status = LauncherStatus(resume_asked_at=now, resumes=resume.count_next(status, now))
        waits.append(resume.seconds_until_next(status, now))
        now += waits[-1]
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_the_first_resume_is_at_once() -> None:
    assert resume.seconds_until_next(LauncherStatus(), 5.0) == 0.0


@pytest.mark.parametrize(("ago", "count"), [(599.0, 4), (601.0, 1)])
def test_a_late_error_resets_the_count(ago: float, count: int) -> None:
    assert resume.count_next(LauncherStatus(resume_asked_at=1000.0 - ago, resumes=3), 1000.0) == count


@pytest.mark.parametrize(("asked", "left"), [(None, 0.0), (996.0, 6.0), (980.0, -10.0)])
def test_a_resumed_guest_is_on_trial_for_a_while(asked: float | None, left: float) -> None:
    assert resume.seconds_on_trial(LauncherStatus(resume_asked_at=asked), 1000.0) == left
