# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts with an unknown result: they are looked up before another start.

A start without a response may have taken effect, and its guest may have ended by then: another start would be a second
run.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.controlplane.simulation.launcher import Launcher


class Doubts:
    """Per process, by the UID of the Pod."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._open: set[str] = set()
        self._up: set[str] = set()

    def begins(self, there: Launcher) -> None:
        """Record that a domain is about to be defined for its start."""
        if there.pod_uid in self._open:
            self._complain(f"{there.vmi} is started again without a look after a start without a response")
        if there.pod_uid in self._up:
            self._complain(f"{there.vmi} is started again after a start that succeeded")

    def is_open(self, there: Launcher) -> None:
        """Record a start without a response."""
        self._open.add(there.pod_uid)

    def is_seen(self, there: Launcher) -> None:
        """Record that the state of the domain was read."""
        self._open.discard(there.pod_uid)

    def is_up(self, there: Launcher) -> None:
        """Record a successful start, with the guest that existed then."""
        if there.has_run:
            self._up.add(there.pod_uid)
