# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timestamps of the Kubernetes API: RFC 3339, UTC, whole seconds. No clock is read here."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def format_timestamp(seconds: float) -> str:
    """Format seconds since the epoch, e.g. as 2026-01-31T12:00:00Z."""
    return _format(int(seconds))


def read_timestamp(text: str | None) -> float | None:
    """Return seconds since the epoch; None for a missing or malformed timestamp."""
    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        return None


def parse_timestamp(text: str) -> float:
    """Return seconds since the epoch. Raises ValueError for a malformed timestamp."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@lru_cache(maxsize=64)
def _format(seconds: int) -> str:
    """Cached: a busy controller formats the same second many times."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
