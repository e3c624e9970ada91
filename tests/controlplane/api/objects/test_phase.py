# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api.objects import phase


@pytest.mark.parametrize("final", sorted(phase.FINAL))
@pytest.mark.parametrize("after", sorted(phase.TRANSITIONS))
def test_a_final_phase_never_changes(final: str, after: str) -> None:
    assert phase.is_allowed_transition(final, after) == (final == after)


@pytest.mark.parametrize("before", sorted(set(phase.TRANSITIONS) - phase.FINAL))
def test_every_other_phase_may_fail_or_stay(before: str) -> None:
    assert phase.is_allowed_transition(before, phase.FAILED)
    assert phase.is_allowed_transition(before, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(phase.RUNNING, phase.SCHEDULED, id="back to the controller"),
        pytest.param(phase.SCHEDULED, phase.PENDING, id="back to the start"),
        pytest.param(phase.PENDING, phase.RUNNING, id="without hand-over"),
        pytest.param("Melting", phase.RUNNING, id="from a phase that nobody knows"),
    ],
)
def test_phases_neither_go_back_nor_skip_the_hand_over(before: str, after: str) -> None:
    assert not phase.is_allowed_transition(before, after)


@pytest.mark.parametrize("before", sorted(phase.AFTER_HAND_OVER))
def test_after_the_hand_over_every_phase_may_become_unknown_or_running(before: str) -> None:
    """Its Pod may be deleted before virt-handler reports the guest as running, and its outcome is then unknown."""
    assert phase.is_allowed_transition(before, phase.UNKNOWN)
    assert phase.is_allowed_transition(before, phase.RUNNING)


def test_every_phase_has_one_owner() -> None:
    assert set(phase.TRANSITIONS) == phase.BEFORE_HAND_OVER | phase.AFTER_HAND_OVER | phase.FINAL
    assert not phase.BEFORE_HAND_OVER & phase.AFTER_HAND_OVER
