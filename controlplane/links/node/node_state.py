# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest state of a node, as virt-node sends it to virt-handler. Kept in both processes."""

from __future__ import annotations

import asyncio

from controlplane.links.node.messages import NodeState


class CurrentNodeState:
    """The newest state, and a way to wait for a change."""

    def __init__(self, state: NodeState | None) -> None:
        """state: None when it is unknown."""
        self._state = state
        self._changed = asyncio.Condition()

    @property
    def state(self) -> NodeState | None:
        """The newest state; None when it is unknown."""
        return self._state

    async def wait_for_other_than(self, previous: NodeState | None) -> NodeState:
        """Return the state once it is known and differs from the previous one."""
        async with self._changed:
            while self._state is None or self._state == previous:
                await self._changed.wait()
            return self._state

    async def update(self, state: NodeState | None) -> None:
        """Replace the state, and wake the waiting tasks."""
        async with self._changed:
            self._state = state
            self._changed.notify_all()
