# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probabilities of faults during migrations: each stretch has its own places, and is calm elsewhere.

A migration is a long sequence of calls. If each could fail equally, hardly one would reach the last calls, which decide
the owner of the guest.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION
from tests.support.calls import Call, Fate
from tests.support.store import Json

FATES: tuple[Fate, ...] = ("request lost", "answer lost", "forbidden", "throttled")
LOST: tuple[Fate, ...] = ("request lost", "answer lost")
AT_ONCE = (1, 2, 3)
"""Places of one stretch."""
RATES = (0.3, 0.6, 0.9)
"""The probability of a fault there."""
ELSEWHERE = (0.0, 0.0, 0.005, 0.03)
"""The probability of a bad fate elsewhere."""
MISHAPS = (0.0, 0.0, 0.005, 0.02)
"""The probability of a fault at any time."""


def _moving(call: Call) -> Json:
    """Return what a write of a VMI's status says about its migration."""
    status = (call.asked.get("patch") or {}).get("status") or {}
    return (call.kind == VIRTUAL_MACHINE_INSTANCE.kind and status.get("migrationState")) or {}


def _is_commit(call: Call) -> bool:
    status = (call.asked.get("patch") or {}).get("status") or {}
    return call.kind == VIRTUAL_MACHINE_INSTANCE.kind and "activePods" in status and bool(_moving(call) or call.asked)


def _is_deletion(call: Call) -> bool:
    return call.verb == "delete" and call.kind in (POD.kind, VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind)


def _is_status(call: Call) -> bool:
    return call.kind == VIRTUAL_MACHINE_INSTANCE_MIGRATION.kind and call.verb == "patch status of"


PLACES: dict[str, Callable[[Call], bool]] = {
    "the hand-over": lambda call: bool(_moving(call).get("targetPodUID")),
    "the door": lambda call: call.verb == "open a door for" or bool(_moving(call).get("targetNodeAddress")),
    "the beginning": lambda call: call.verb == "reach" or bool(_moving(call).get("startTimestamp")),
    "on the way": lambda call: call.verb in ("take in", "send"),
    "its stop": lambda call: call.verb == "stop" or _moving(call).get("mode") == "Paused",
    "all of it": lambda call: call.verb == "send all of",
    "its coming": lambda call: call.verb == "finish",
    "the last step": lambda call: call.verb in ("confirm", "take back"),
    "its going on": lambda call: call.verb in ("resume at the target", "resume"),
    "the last word": lambda call: bool(_moving(call).get("completed") or _moving(call).get("failed")),
    "the commit": _is_commit,
    "a cancel": lambda call: call.verb == "abort" or bool(_moving(call).get("abortRequested")),
    "clearing": _is_deletion,
    "its phases": _is_status,
}
"""Steps of a migration, by their call."""


OFTEN = ("the last step", "its going on", "its stop", "a cancel")
RARELY = ("the hand-over", "the door", "on the way", "clearing", "its phases")
"""Places with many calls, or of little consequence."""
WEIGHTS = {name: 1 if name in RARELY else 6 if name in OFTEN else 3 for name in PLACES}
CHANGES_OF_MIND = (0.0, 0.0, 0.01, 0.04)
"""The probability of a cancellation in a step."""


def find_place(call: Call) -> str:
    """Return the step of a migration that a call is; "" for others."""
    return next((name for name, is_there in PLACES.items() if is_there(call)), "")


@dataclass(slots=True)
class Odds:
    """The probabilities of one stretch."""

    rng: random.Random
    places: frozenset[str] = frozenset()
    rate: float = 0.0
    elsewhere: float = 0.0
    mishaps: float = 0.0
    cancels: float = 0.0

    def draw(self) -> None:
        """Begin a new stretch."""
        drawn = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=self.rng.choice(AT_ONCE))
        self.places = frozenset(drawn)
        self.cancels = self.rng.choice(CHANGES_OF_MIND)
        self.rate, self.elsewhere = self.rng.choice(RATES), self.rng.choice(ELSEWHERE)
        self.mishaps = self.rng.choice(MISHAPS)

    def strikes(self, call: Call) -> bool:
        """Whether a fault happens at this call."""
        place = find_place(call)
        return place in self.places and self.rng.random() < self.rate

    def fate(self, call: Call, *, is_struck: bool) -> Fate:
        """Draw the fate of a call."""
        if not is_struck and self.rng.random() >= self.elsewhere:
            return "done"
        return self.rng.choice(FATES if call.is_api and call.is_write else LOST)
