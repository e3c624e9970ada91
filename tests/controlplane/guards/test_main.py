# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program says to a choice that cannot be: at once, in words, and nothing runs."""

from __future__ import annotations

import pytest

from tests.controlplane.guards import __main__ as program


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise AssertionError("guards are taken out")

    monkeypatch.setattr(program, "take_out", refuse)


def test_a_part_that_is_in_no_guard_is_named_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--only", "vmi/decyde"]) == 2
    assert capsys.readouterr().err == "guards: no guard's file or line contains 'vmi/decyde'\n"


@pytest.mark.parametrize("words", [("--sample", "-3"), ("--sample", "0"), ("--workers", "0")], ids=" ".join)
def test_less_than_one_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(words)

    assert ended.value.code == 2
    assert f"argument {words[0]}: {words[1]} is not 1 or more" in capsys.readouterr().err
