# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' IntOrString: a number, or a percentage of a total, e.g. 3 or 25%. Pure."""

from __future__ import annotations

import re
from typing import Any

_PERCENT = re.compile(r"([0-9]{1,3})%")
MOST = 2**31 - 1


def parse(value: Any) -> tuple[int, bool]:
    """Return the number, and whether it is a percentage. ValueError when it is invalid or not positive."""
    if value.__class__ is int and 0 < value <= MOST:
        return value, False
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[1]) <= 100:
        raise ValueError("must be a whole number above 0, or a percentage from 1% to 100%")
    return int(match[1]), True


def of(value: Any, whole: int) -> int:
    """Return the number of items, rounded down, at least 1. whole: the total, also the result for an invalid value."""
    try:
        number, is_percentage = parse(value)
    except ValueError:
        return max(1, whole)
    return max(1, whole * number // 100 if is_percentage else number)
