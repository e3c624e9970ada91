# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse durations like Go's time.ParseDuration: the JSON form of Duration in Kubernetes' API. Pure."""

from __future__ import annotations

import re

_SECONDS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_LIMIT_CHARACTERS = 64


def seconds(text: str) -> float | None:
    """Parse a duration, e.g. 5m0s; None for an invalid one."""
    if len(text) > _LIMIT_CHARACTERS:
        return None
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            return None
        total += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return sign * total if rest else None
