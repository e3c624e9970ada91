# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match field values against regular expressions, which are compiled once."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def matches(pattern: str, value: str) -> bool:
    """Tell whether the whole value matches."""
    return _compiled(pattern).fullmatch(value) is not None
