# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest printed, as text for people: without escape sequences and control characters. Pure."""

from __future__ import annotations

import re

LIMIT = 64 * 1024
"""Bytes that are kept; older ones are dropped."""
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]+[0-~]|[0-Z\\`-~])"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*|[ -/]*)$")
"""An escape sequence whose end was not received yet."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(data: bytes) -> str:
    """Return printed bytes as text."""
    data = data.removesuffix(unfinished(data))
    return _CONTROL.sub("", _ESCAPE.sub("", data.decode(errors="replace")))


def unfinished(data: bytes) -> bytes:
    """Return the beginning of an escape sequence at the end of the bytes; b"" if there is none."""
    match = _UNFINISHED.search(data)
    return b"" if match is None else match.group()


def last_lines(text: str, number: int) -> list[str]:
    """Return the last lines of a text, without empty ones at its end."""
    return text.rstrip().split("\n")[-number:] if text.strip() else []
