# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcomes of a record that stay valid after a change."""

from __future__ import annotations

from tests.mutation.scores import known_outcomes, percent_of
from tests.mutation.targets import ROOT, find_files, find_tests

OLD = "X = 1\nY = 2\nZ = 3\n"


def test_outcomes_of_unchanged_lines_are_known_also_when_they_have_moved() -> None:
    assert known_outcomes(OLD, f"\n{OLD}", survived=(1,)) == {0: True, 1: False, 2: True}


def test_the_outcome_of_a_changed_line_is_not_known() -> None:
    assert known_outcomes(OLD, OLD.replace("2", "5"), survived=()) == {0: True, 2: True}


def test_nothing_is_known_without_the_recorded_text() -> None:
    assert known_outcomes(None, OLD, survived=()) == {}


def test_a_score_is_rounded_down() -> None:
    assert percent_of(2, 3) == 66


def test_each_file_has_tests() -> None:
    files = find_files()
    assert len(files) > 50
    assert [file for file in files if not find_tests(file)] == []
    assert all((ROOT / test).exists() for file in files for test in find_tests(file))
