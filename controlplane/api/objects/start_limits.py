# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of a run's start, by annotations of a machine: number of attempts, and timeout. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kubevirt_api.names import FURTHER_ATTEMPTS, RUN_TIMEOUT

MOST_FURTHER_ATTEMPTS = 10
LONGEST_TIMEOUT_SECONDS = 86_400
BOUNDS = {FURTHER_ATTEMPTS: MOST_FURTHER_ATTEMPTS, RUN_TIMEOUT: LONGEST_TIMEOUT_SECONDS}
"""The largest number of each annotation; the smallest is 0."""


def read_limit(annotations: Mapping[str, str], name: str) -> int | None:
    """Parse an annotation of BOUNDS; None when it is not set. ValueError says what it must be."""
    text = annotations.get(name)
    return None if text is None else parse_limit(text, BOUNDS[name])


def parse_limit(text: str, most: int) -> int:
    """Parse a number from 0 to most. ValueError says what it must be."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_number or int(text) > most:
        raise ValueError(f"must be a whole number from 0 to {most}")
    return int(text)
