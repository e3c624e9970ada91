# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node offers to launchers, kept at either end. How that is found out, told or judged is not in here."""

from __future__ import annotations

import asyncio

from controlplane.links.node.messages import NodeState


class Offer:
    """The newest state, and a way to wait for another one."""

    def __init__(self, state: NodeState | None) -> None:
        """None: nobody knows yet."""
        self._state = state
        self._changed = asyncio.Condition()

    @property
    def state(self) -> NodeState | None:
        return self._state

    async def other_than(self, known: NodeState | None) -> NodeState:
        """Return the state as soon as there is one and it is another one than the known one."""
        async with self._changed:
            while self._state is None or self._state == known:
                await self._changed.wait()
            return self._state

    async def become(self, state: NodeState | None) -> None:
        async with self._changed:
            self._state = state
            self._changed.notify_all()
