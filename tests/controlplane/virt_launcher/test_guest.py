# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.state import Life, State
from controlplane.virt_launcher.guest import Verdict, judge


@pytest.mark.parametrize(
    ("state", "with_grace", "without_grace"),
    [
        pytest.param(State(Life.RUNNING, "booted"), None, None, id="runs"),
        pytest.param(State(Life.SHUT_OFF, "unknown"), None, None, id="not begun"),
        pytest.param(State(Life.SHUT_OFF, "failed"), None, None, id="could not be started: may be tried again"),
        pytest.param(State(Life.SHUT_OFF, "shutdown"), 0, 0, id="shut down"),
        pytest.param(State(Life.SHUT_OFF, "destroyed"), 1, 0, id="switched off"),
        pytest.param(State(Life.SHUT_OFF, "crashed"), 1, 1, id="QEMU was killed"),
        pytest.param(State(Life.CRASHED, "panicked"), 1, 1, id="panicked"),
        pytest.param(State(Life.SHUT_OFF, "migrated"), None, None, id="went on elsewhere"),
    ],
)
def test_the_exit_code_tells_how_the_guest_ended(
    state: State, with_grace: int | None, without_grace: int | None
) -> None:
    def code(verdict: Verdict | None) -> int | None:
        return verdict and verdict.exit_code

    assert code(judge(state, is_acpi_expected=True)) == with_grace
    assert code(judge(state, is_acpi_expected=False)) == without_grace
