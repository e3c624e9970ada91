# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is to start: nobody holds a node's places for ever, and none is lost."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_STARTS = "controlplane/virt_handler/launchers/starts.py"
_VERBS = "controlplane/virt_handler/launchers/verbs.py"
_BY_STARTS = ("tests/controlplane/virt_handler/launchers/test_starts.py",)
_BY_VERBS = ("tests/controlplane/virt_handler/launchers/test_verbs.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_STARTS,
        line="        ending = asyncio.get_running_loop().call_later(self._lent_seconds(), take_back)\n",
        without="        ending = asyncio.get_running_loop().call_later(3600, take_back)\n",
        because="A launcher that hangs must not hold a node's place for as long as it likes.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line="            self._overdue += 1\n",
        without="",
        because="Where a node's storage hangs, whose does not must not wait seconds for each that does.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line="            if lent:\n                self._overdue = 0\n                self._free(lent.pop())\n",
        without="            self._overdue = 0\n            self._free(turn)\n",
        because="A place that was taken back is another's by now: giving it back again lets one more start.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line="            else:  # its turn came in the same moment\n                self._free(turn)\n",
        without="",
        because="A start that is cancelled as its turn comes must not take the place with it.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line="one.has_come.cancelled() or ",
        without="",
        because="A start that is cancelled while it waits must not be given a place.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line=" or (one.turn.is_again and is_tried_again)",
        without="",
        because="Starts that fail again and again must not have all places.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_STARTS,
        line=" or (left == 0 and one.turn.namespace not in by_namespace)",
        without="",
        because="A namespace that has all places must not keep another's machine waiting.",
        tests=_BY_STARTS,
    ),
    Guard(
        file=_VERBS,
        line="        async with self._starts.place(turn):\n",
        without="        if turn:\n",
        because="Without turns all starts of a node crawl side by side, and end together.",
        tests=_BY_VERBS,
    ),
)
