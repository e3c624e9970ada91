# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an entry is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A line that guards something, and who would miss it."""

    file: str
    line: str
    """As it is: one line or several, found exactly once in the file."""
    without: str
    """The same without its guard: valid Python that does the unguarded thing."""
    because: str
    """What goes wrong without it, in a sentence."""
    tests: tuple[str, ...] = ()
    """Files (or file::test) of which at least one test fails without it."""
    seeds: int = 0
    """Ask the simulation as well: this many seeds, from 1 on, of which one must find it."""
    may_hang: bool = False
    """Without it the tests do not end, and that is how it is missed."""

    @property
    def id(self) -> str:
        return f"{self.file.removeprefix('controlplane/')}: {' '.join(self.line.split())[:60]}"
