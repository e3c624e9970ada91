# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A part of a whole as Kubernetes spells it: a number, or a percentage, e.g. 3 or 25%. Pure."""

from __future__ import annotations

import re
from typing import Any

_PERCENT = re.compile(r"([0-9]{1,3})%")
MOST = 2**31 - 1


def parse(value: Any) -> tuple[int, bool]:
    """Return the number, and whether it is a percentage. ValueError for what means nothing or less."""
    if value.__class__ is int and 0 < value <= MOST:
        return value, False
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 0 < int(found[1]) <= 100:
        raise ValueError("must be a whole number above 0, or a percentage from 1% to 100%")
    return int(found[1]), True


def of(value: Any, whole: int) -> int:
    """Return how many of so many that is, rounded down, at least one. What means nothing is all of them."""
    try:
        number, is_percentage = parse(value)
    except ValueError:
        return max(1, whole)
    return max(1, whole * number // 100 if is_percentage else number)
