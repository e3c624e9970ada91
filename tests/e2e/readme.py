# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands and files of README, taken from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
SECTION = "## Use it on your own cluster"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """commands: in order, one a line. files: contents that the reader writes, by the name in their first comment."""

    commands: tuple[str, ...]
    files: dict[str, str]


def read_story(text: str | None = None) -> Section:
    """Read the section for users with their own cluster."""
    section = (text or README.read_text()).partition(SECTION)[2].partition("\n## ")[0]
    commands: list[str] = []
    files: dict[str, str] = {}
    for language, body in _BLOCK.findall(section):
        if language == "console":
            commands += body.splitlines()
        elif language == "yaml":
            first, _unused, _rest = body.partition("\n")
            files[first.removeprefix("# ")] = body
    return Section(tuple(commands), files)
