# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.state import Life, State, derive_outcome, explain_crash, was_resumed


@pytest.mark.parametrize(
    ("life", "reason", "with_acpi", "without_acpi"),
    [
        (Life.SHUT_OFF, "shutdown", "Succeeded", "Succeeded"),
        (Life.SHUT_OFF, "saved", "Succeeded", "Succeeded"),
        (Life.SHUT_OFF, "from_snapshot", "Succeeded", "Succeeded"),
        (Life.SHUT_OFF, "destroyed", "Failed", "Succeeded"),
        (Life.SHUT_OFF, "crashed", "Failed", "Failed"),
        (Life.CRASHED, "panicked", "Failed", "Failed"),
        (Life.CRASHED, "unknown", "Failed", "Failed"),
        (Life.PAUSED, "postcopy_failed", "Failed", "Failed"),
        (Life.PAUSED, "ioerror", None, None),
        (Life.PAUSED, "user", None, None),
        (Life.SHUT_OFF, "migrated", None, None),
        (Life.SHUT_OFF, "unknown", None, None),
        (Life.SHUT_OFF, "failed", None, None),
        (Life.RUNNING, "booted", None, None),
        (Life.BLOCKED, "unknown", None, None),
        (Life.SUSPENDED, "unknown", None, None),
        (Life.SHUTTING_DOWN, "user", None, None),
        (Life.UNKNOWN, "unknown", None, None),
    ],
)
def test_the_outcome_of_a_run_is_upstreams(
    life: Life, reason: str, with_acpi: str | None, without_acpi: str | None
) -> None:
    state = State(life, reason)
    assert derive_outcome(state, is_acpi_expected=True) == with_acpi
    assert derive_outcome(state, is_acpi_expected=False) == without_acpi


@pytest.mark.parametrize(
    ("life", "reason", "expected"),
    [(Life.PAUSED, "starting_up", True), (Life.PAUSED, "user", False), (Life.RUNNING, "booted", False)],
)
def test_a_domain_paused_for_its_start_is_starting(life: Life, reason: str, expected: bool) -> None:
    assert State(life, reason).is_starting is expected


RUNS, RESUMED = State(Life.RUNNING, "booted"), State(Life.RUNNING, "unpaused")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(State(Life.PAUSED, "user"), RESUMED, True, id="a user's pause"),
        pytest.param(State(Life.PAUSED, "ioerror"), State(Life.BLOCKED, "unknown"), True, id="an I/O error"),
        pytest.param(
            State(Life.PAUSED, "migration"), State(Life.RUNNING, "migration_canceled"), True, id="a failed migration"
        ),
        pytest.param(State(Life.PAUSED, "starting_up"), RUNS, False, id="a start"),
        pytest.param(RUNS, RUNS, False, id="no pause"),
        pytest.param(RESUMED, RESUMED, False, id="an earlier pause"),
        pytest.param(RUNS, State(Life.PAUSED, "user"), False, id="still paused"),
        pytest.param(State(Life.PAUSED, "user"), State(Life.SHUT_OFF, "destroyed"), False, id="ended"),
        pytest.param(State(Life.PAUSED, "user"), None, False, id="no domain any more"),
        pytest.param(None, RESUMED, True, id="first look: arrived by a migration, or virt-handler was restarted"),
        pytest.param(None, State(Life.RUNNING, "migrated"), True, id="first look: resumed by libvirt"),
        pytest.param(None, RUNS, False, id="first look: never paused"),
    ],
)
def test_a_guest_was_resumed_if_it_runs_after_a_pause(
    before: State | None, after: State | None, expected: bool
) -> None:
    assert was_resumed(before, after) is expected


@pytest.mark.parametrize("cause", ["panicked", "watchdog"])
def test_a_crash_gets_the_cause_from_its_event(cause: str) -> None:
    crashed = State(Life.SHUT_OFF, "crashed")
    assert explain_crash(crashed, cause) == State(Life.CRASHED, cause)
    assert derive_outcome(explain_crash(crashed, cause), is_acpi_expected=False) == "Failed"
    assert explain_crash(crashed, "") == crashed


@pytest.mark.parametrize("life", [life for life in Life if life is not Life.SHUT_OFF])
def test_a_state_other_than_a_crash_is_unchanged(life: Life) -> None:
    for state in (State(life, "crashed"), State(Life.SHUT_OFF, "shutdown"), State(Life.SHUT_OFF, "destroyed")):
        assert explain_crash(state, "panicked") == state


def test_a_domain_is_up_while_its_qemu_may_exist() -> None:
    """A suspended guest has not ended."""
    up = {Life.RUNNING, Life.BLOCKED, Life.PAUSED, Life.SHUTTING_DOWN, Life.SUSPENDED}
    assert {life for life in Life if life.is_up} == up
