# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from fractions import Fraction

import pytest

from controlplane.api.objects import quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64M", 64 * 10**6),
        ("64Mi", 64 * 2**20),
        ("1.5Gi", 3 * 2**29),
        ("0.5", Fraction(1, 2)),
        (0.1, Fraction(1, 10)),
        (2, 2),
        ("100m", Fraction(1, 10)),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("-1Gi", -(2**30)),
        (".5k", 500),
        ("5.", 5),
        ("9223372036854775808", 2**63),
        ("1e30", 10**30),
    ],
)
def test_quantities_are_exact(text: quantity.Quantity, value: int | Fraction) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text", ["1Gib", "", " 1", "1 Gi", "Gi", "1ki", "0x10", "1e", "1e999", "1.2.3", "\u0661", True, "9" * 50]
)
def test_malformed_quantities_are_refused(text: quantity.Quantity) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "milli", "count"),
    [("1500m", 1500, 2), ("0.0001", 1, 1), ("2", 2000, 2)],
)
def test_fractions_are_rounded_up(text: str, milli: int, count: int) -> None:
    assert quantity.to_milli(text) == milli
    assert quantity.to_bytes(text) == count


@pytest.mark.parametrize(("count", "text"), [(2**30, "1Gi"), (1536 * 2**20, "1536Mi"), (10**6, "1000000"), (0, "0")])
def test_bytes_are_formatted_with_the_largest_exact_suffix(count: int, text: str) -> None:
    assert quantity.from_bytes(count) == text
    assert quantity.to_bytes(text) == count


@pytest.mark.parametrize(("milli", "text"), [(1500, "1500m"), (2000, "2"), (0, "0")])
def test_thousandths_are_formatted_short(milli: int, text: str) -> None:
    assert quantity.from_milli(milli) == text
