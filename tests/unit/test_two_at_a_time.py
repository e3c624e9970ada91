# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The failure of one of several commands is never lost."""

from __future__ import annotations

import sys

import pytest

from tests import two_at_a_time


def test_output_and_exit_code_of_a_command_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys; print('said', flush=True); sys.exit('why')"

    assert two_at_a_time.shown([sys.executable, "-c", program]) == (1, "said\nwhy\n")
    assert capsys.readouterr().out == "said\nwhy\n"


@pytest.mark.parametrize(("codes", "code"), [((0, 0, 0), 0), ((0, 1, 0), 1), ((1, 0, -15), 1)])
def test_all_commands_run_and_failures_are_named_at_the_end(
    codes: tuple[int, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    by_name = {f"session-{number}": word for number, word in enumerate(codes)}
    noted: list[str] = []
    monkeypatch.setattr(two_at_a_time, "shown", lambda command: (by_name[command[-1]], ""))
    monkeypatch.setattr(two_at_a_time, "note", lambda name, said: noted.append(name))

    assert two_at_a_time.main([*by_name]) == code

    failed = {name for name, word in by_name.items() if word}
    assert {word for word in capsys.readouterr().out.split() if word in by_name} == failed
    assert set(noted) == failed
