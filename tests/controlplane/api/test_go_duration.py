# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.api import go_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("5m0s", 300.0),
        ("1h15m30.918s", 4530.918),
        ("300ms", 0.3),
        ("-1.5h", -5400.0),
        ("+2s", 2.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("2us", 2e-6),
        ("2\u00b5s", 2e-6),
        ("2ns", 2e-9),
    ],
)
def test_a_duration_is_parsed_as_go_parses_it(text: str, seconds: float) -> None:
    assert go_duration.seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "+", "-", "5", "s", ".s", "5 m", "5m 0s", "1d", "5m0", "1e3s", "NaNs", "1s" * 40])
def test_a_malformed_duration_is_none(text: str) -> None:
    assert go_duration.seconds(text) is None
