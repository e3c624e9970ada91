# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All actions: target, time and result. Printed at once, and searched later for the reason why a guest ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Names = frozenset[str]


@dataclass(frozen=True)
class Deed:
    """An action that may or may not end guests."""

    at: float
    """Its start (monotonic)."""
    what: str
    ends: Names
    """The guests that it may end: vm/NAME, vmi/NAME, vmirs/NAME, uid/UID of a VMI, node/NAME."""


@dataclass
class Journal:
    """Every action, in order."""

    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    deeds: list[Deed] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    """Responses that no user should get."""

    def note(self, what: str, *, ends: Iterable[str] = ()) -> None:
        """Record an action before it happens."""
        deed = Deed(time.monotonic(), what, frozenset(ends))
        self.deeds.append(deed)
        self.say(json.dumps({"at": round(deed.at - self.began, 1), "does": what}))

    def answer(self, text: str, *, is_surprise: bool = False) -> None:
        """Record the result of the last action."""
        if is_surprise:
            self.surprises.append(f"{self.deeds[-1].what}: {text}")
        self.say(json.dumps({"at": round(time.monotonic() - self.began, 1), "answer": text[:300]}))

    def why(self, names: Names, since: float, until: float) -> str | None:
        """Return the action that may have ended a guest with one of these names in that time; None without one."""
        deeds = (deed for deed in reversed(self.deeds) if since <= deed.at <= until and deed.ends & names)
        deed = next(deeds, None)
        return None if deed is None else deed.what
