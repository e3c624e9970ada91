# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of failures names tests that there are, and that run on real parts."""

from __future__ import annotations

import re

import pytest

from tests.controlplane.api.corpus import ROWS as CORPUS
from tests.controlplane.guards.copy import ROOT
from tests.failures import CONTROL_PLANE, LAUNCHERS, NODES, REFUSED, ROWS, RUNS

NOT_BUILT = {"a launcher outlives its failure"}
"""Rows of the corpus by which what is not built is refused."""


def test_no_failure_is_named_twice() -> None:
    assert len(ROWS) == len(RUNS) + len(NODES) + len(LAUNCHERS) + len(CONTROL_PLANE)


@pytest.mark.parametrize("failure", ROWS)
def test_a_failure_names_tests_that_there_are(failure: str) -> None:
    assert ROWS[failure]
    for one in ROWS[failure]:
        file, _unused, name = one.partition("::")
        found = rf"^ *- name: {re.escape(name)}$" if file.endswith(".yml") else rf"^(async )?def {name}\("
        assert re.search(found, (ROOT / file).read_text(), re.MULTILINE), one


def test_they_run_on_real_parts() -> None:
    """On a lab, or on a real API server; what extensions/molecule does, it does on a lab."""
    files = {one.partition("::")[0] for tests in ROWS.values() for one in tests if ".py::" in one}

    assert not [one for one in files if not re.search(r"pytest\.mark\.(lab|component)", (ROOT / one).read_text())]


def test_what_is_not_built_is_refused() -> None:
    titles = {row.title for row in CORPUS if "not built" in row.words}

    assert titles >= NOT_BUILT
    assert len([failure for failure, tests in ROWS.items() if tests == (REFUSED,)]) == len(NOT_BUILT)
