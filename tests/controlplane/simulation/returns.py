# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the virt-handler of a node comes back, and whose guests it must check before it starts or offers anything.

It shares no code with the clearing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.answers import Answers
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.listing import DURATION_SECONDS

CLEARING_SECONDS = 60.0
"""Within this time after a return, an orphan may be ended without its minute, and an unanswered question blocks
starts.
"""
ASKED_WITHIN_SECONDS = 10.0
"""After a return, or after the questions in progress then, each launcher is checked within this time."""
CLEARING = Key("", "clear the node")
"""The task that sends the questions of a node."""


@dataclass(frozen=True, slots=True)
class Return:
    at: float
    """Monotonic."""
    version: int
    """The version of the store at that moment: older responses do not count."""
    pods: Mapping[str, object]
    """By the UIDs of the Pods of its launchers: their sessions. A launcher lost and found again has another one."""


class Returns:
    """Per process; its start counts as a return."""

    def __init__(self) -> None:
        self._sent: float | None = None
        """The send time (monotonic) of the last successful renewal."""
        self._all: list[Return] = []
        self._asked: dict[Key, list[tuple[int, float]]] = {}
        """The version of the store and the time (monotonic) of each question about a VMI, whatever its result."""
        self._settled_at = 0.0

    def comes_back(self, now: float, version: int, pods: Mapping[str, object]) -> None:
        """Record what is known at that moment."""
        self._all.append(Return(now, version, dict(pods)))

    def renewed(self, sent: float, now: float, version: int, pods: Mapping[str, object]) -> None:
        """Record a successful renewal: after a silence as long as the Lease it is a return."""
        if self._sent is not None and now - self._sent >= DURATION_SECONDS:
            self.comes_back(now, version, pods)
        self._sent = sent

    def asks(self, vmi: Key, version: int, now: float) -> None:
        """Record a question."""
        self._asked.setdefault(vmi, []).append((version, now))

    def settles(self, now: float) -> None:
        """Record the end of a question: what it covered is not asked twice."""
        self._settled_at = now

    def overdue(self, now: float, launchers: Mapping[str, object], vmis: Mapping[str, Key]) -> str | None:
        """Return a launcher that was not checked since a return. Both by the UID of the Pod.

        Most guests belong to their node, and a missing check would do no harm: so this is checked without any fault.
        """
        for uid, known_by in launchers.items():
            vmi = vmis[uid]
            requested = self._asked.get(vmi, [(-1, 0.0)])[-1][0]
            backs = (item for item in self._all if item.pods.get(uid) is known_by)
            since = next((back.at for back in backs if requested < back.version), None)
            if since is not None and now - max(since, self._settled_at) > ASKED_WITHIN_SECONDS:
                return f"it came back {now - since:.1f} s ago and has not asked whose the launcher of {vmi} is"
        return None

    def is_clearing(self, now: float) -> bool:
        """Whether an orphan need not wait its minute: the node has just come back, or its heartbeat fails."""
        is_silent = self._sent is not None and now - self._sent >= DURATION_SECONDS
        return is_silent or now - self._all[-1].at < CLEARING_SECONDS

    def unasked(self, now: float, ever: Answers, launchers: Mapping[str, Launcher], but: str = "") -> str | None:
        """Return a launcher whose guest may be an orphan by now and was not checked.

        launchers: those still known. but: UID of the Pod that is started. A launcher no longer blocks when the first
        return since its last response, or its first question, is longer ago than CLEARING_SECONDS.
        """
        for uid, one in launchers.items():
            answer = ever.of(VIRTUAL_MACHINE_INSTANCE.kind, one.vmi)
            known = -1 if answer is None else answer.version
            since = next((back.at for back in self._all if uid in back.pods and known < back.version), None)
            questions = (at for version, at in self._asked.get(one.vmi, ()) if version > known)
            if uid != but and since is not None and now - min([since, *questions]) < CLEARING_SECONDS:
                return f"nobody was asked whether the launcher of {one.vmi} is its node's own since that came back"
        return None
