# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Points in time as the API spells them: RFC 3339, UTC, whole seconds. Knows no clock."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def render_stamp(seconds: float) -> str:
    """Spell seconds since the epoch, e.g. 2026-01-31T12:00:00Z."""
    return _render(int(seconds))


def read_stamp(text: str | None) -> float | None:
    """Read a stamp that may be missing, or be none."""
    try:
        return parse_stamp(text) if text else None
    except ValueError:
        return None


def parse_stamp(text: str) -> float:
    """Read a stamp as seconds since the epoch; ValueError when it is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@lru_cache(maxsize=64)
def _render(seconds: int) -> str:
    """Spell it once: within one second it is asked for again and again."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
