# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which comparisons the linter takes for ones that sanity's pylint refuses."""

from __future__ import annotations

import pytest

from tests.sanity.comparisons import CHAIN, USE_IN, refused


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("a < b and b < c", CHAIN),
        ("x > 0 and x < 10", CHAIN),
        ("0 <= x and more and x <= 10", CHAIN),
        ("b > a and c > b", CHAIN),
        ("not (a < b and b <= c)", CHAIN),
        ("x == a or x == b", USE_IN),
        ("x == 1 or x == y", USE_IN),
        ("a.b == 'c' or 'd' == a.b", USE_IN),
        ("x != 1 and x != 2", USE_IN),
    ],
)
def test_what_pylint_refuses_is_found_where_it_is(source: str, advice: str) -> None:
    assert refused(f"first = 1\nif {source}:\n    pass\n") == [(2, advice)]


@pytest.mark.parametrize(
    "source",
    [
        "a < b < c",
        "a < b and a < c",
        "a < b or b < c",
        "f(x) > 0 and f(x) < 10",
        "a.b > 0 and a.b < 10",
        "x in (a, b)",
        "x == a or y == b",
        "x == a or x != b",
        "x == a or x == b or more",
        "x == a and x == b",
        "f(x) == 1 or f(x) == 2",
        "a < b and a == c",
    ],
)
def test_what_it_lets_pass_is_let_pass(source: str) -> None:
    assert refused(f"if {source}:\n    pass\n") == []
