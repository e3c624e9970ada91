# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress on a terminal and in a log."""

from __future__ import annotations

import io
import sys

import pytest

from lab.progress import EVERY_SECONDS, Count, silent, terminal_of, to_stderr


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    printed: list[str] = []
    clock = Clock()
    count = Count(printed.append, clock=clock)
    for second in range(25):
        clock.now = float(second)
        count.say(f"{second} of 25")
    count.close()
    assert EVERY_SECONDS == 10
    assert printed == ["10 of 25", "20 of 25"]


def test_a_terminal_line_is_updated_in_place_and_cleared() -> None:
    printed: list[str] = []
    terminal = io.StringIO()
    count = Count(printed.append, terminal, clock=Clock())
    for text in ("1 of 2", "1 of 2", "2 of 2"):
        count.say(text)
    count.close()
    assert printed == []
    assert terminal.getvalue().count("\r\x1b[K") == 3
    assert terminal.getvalue().count("1 of 2") == 1
    assert terminal.getvalue().endswith("2 of 2\r\x1b[K")
    assert "\n" not in terminal.getvalue()


def test_a_line_is_cut_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = io.StringIO()
    Count(silent, terminal).say("x" * 100)
    assert len(terminal.getvalue().removeprefix("\r\x1b[K")) == 29


def test_only_progress_on_stderr_uses_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert terminal_of(to_stderr) is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert terminal_of(to_stderr) is sys.stderr
    assert terminal_of(silent) is None
