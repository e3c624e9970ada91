# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node's virt-handler came back, and whose guests it was to ask about before it starts or offers anything.

It shares no code with the clearing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from tests.controlplane.simulation.answers import Answers
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.listing import DURATION_SECONDS

CLEARING_SECONDS = 60.0
"""Within which an orphan is ended sooner than a minute after its VMI was seen last."""


class Returns:
    """Of one process: it begins with one."""

    def __init__(self, now: float) -> None:
        self._sent: float | None = None
        """When (monotonic) the last renewal was asked for that was answered."""
        self._back_at = now
        self._version = 0
        """The store's when it came back: older answers do not count."""
        self._there: frozenset[str] = frozenset()
        """UIDs of the Pods whose launchers it knew then."""

    def comes_back(self, now: float, version: int, pods: Collection[str]) -> None:
        """Take note of what is known in that moment."""
        self._back_at, self._version, self._there = now, version, frozenset(pods)

    def renewed(self, sent: float, now: float, version: int, pods: Collection[str]) -> None:
        """Take note of a renewal that was answered: after a silence as long as the Lease it is a return."""
        if self._sent is not None and now - self._sent >= DURATION_SECONDS:
            self.comes_back(now, version, pods)
        self._sent = sent

    def is_clearing(self, now: float) -> bool:
        """Tell whether an orphan need not have its minute: the node has just come back, or nobody has heard from it."""
        is_silent = self._sent is not None and now - self._sent >= DURATION_SECONDS
        return is_silent or now - self._back_at < CLEARING_SECONDS

    def unasked(self, ever: Answers, launchers: Mapping[str, Launcher], but: str = "") -> str | None:
        """Name a launcher whose guest may be nobody's by now, since nobody was asked about it.

        launchers: those that are known yet. but: UID of the Pod that is started.
        """
        for uid, one in launchers.items():
            if uid not in self._there or uid == but:
                continue
            answer = ever.of(VIRTUAL_MACHINE_INSTANCE.kind, one.vmi)
            if answer is None or answer.version < self._version:
                return f"nobody was asked whether the launcher of {one.vmi} is its node's own since that came back"
        return None
