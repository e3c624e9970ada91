# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table in docs/security.md names every published weakness, and for each one tests that there are."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.controlplane.guards import advisories
from tests.controlplane.guards.copy import ROOT

TESTS = ROOT / "tests" / "controlplane"
PUBLISHED = {
    *("CVE-2020-1701", "CVE-2020-14316", "CVE-2022-1798", "CVE-2023-26484", "CVE-2024-31420", "CVE-2024-33394"),
    *("CVE-2024-1725", "CVE-2025-64324", "CVE-2025-64432", "CVE-2025-64433", "CVE-2025-64434", "CVE-2025-64435"),
    *("CVE-2025-64436", "CVE-2025-64437", "CVE-2025-14525", "CVE-2026-6383", "CVE-2026-7374", "CVE-2026-9804"),
    *("CVE-2026-13201", "CVE-2026-13208", "CVE-2026-13218", "CVE-2026-13322"),
}

SHOWS_BOTH_SIDES = {"policies/test_policies.py", "virt_node/test_launcher_dir.py"}
"""Tests that the guards cannot run: they need an API server, or root. What is let pass stands beside what is not."""


@cache
def table() -> dict[str, tuple[str, list[str]]]:
    """Return rule and tests of each row, by what it was published as."""
    lines = (ROOT / "docs" / "security.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| CVE-")]
    read = {name: (rule, re.findall(r"`([^`]+)`", shown)) for name, rule, shown in rows}
    assert len(read) == len(rows), "one row each"
    return read


def test_every_published_weakness_has_its_row() -> None:
    assert table().keys() == PUBLISHED


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_row_says_its_rule_and_names_tests_that_there_are(name: str) -> None:
    rule, shown = table()[name]
    assert rule
    assert shown
    for one in shown:
        file, _unused, test = one.partition("::")
        assert re.search(rf"^(async )?def {test}\(", (TESTS / file).read_text(), re.MULTILINE), one


def test_what_was_tried_besides_names_tests_that_there_are() -> None:
    lines = (ROOT / "docs" / "security.md").read_text().splitlines()
    shown = [one for line in lines if line.startswith("| ") for one in re.findall(r"`([^`]+\.py)::(\w+)`", line)]
    assert len(shown) > len(PUBLISHED)
    for file, test in shown:
        assert re.search(rf"^(async )?def {test}\(", (TESTS / file).read_text(), re.MULTILINE), f"{file}::{test}"


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_row_s_rule_is_taken_out_and_missed(name: str) -> None:
    """By one of its tests at least: a test that never goes red shows nothing."""
    planted = {test.removeprefix("tests/controlplane/") for guard in advisories.GUARDS for test in guard.tests}
    _unused, shown = table()[name]
    assert [one for one in shown if one in planted or one.partition("::")[0] in SHOWS_BOTH_SIDES]
