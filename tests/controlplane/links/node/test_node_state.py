# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio

from controlplane.links.node.messages import NodeState
from controlplane.links.node.node_state import CurrentNodeState

FIRST, SECOND = NodeState(), NodeState(present=("kvm",))


async def test_a_waiter_gets_each_change_once() -> None:
    current = CurrentNodeState(FIRST)
    assert await current.wait_for_other_than(None) == FIRST
    waiting = asyncio.create_task(current.wait_for_other_than(FIRST))
    await asyncio.sleep(0)
    await current.update(FIRST)
    await asyncio.sleep(0)
    assert not waiting.done()
    await current.update(SECOND)
    assert await waiting == SECOND


async def test_every_waiter_gets_a_change() -> None:
    """The device plugins and the heartbeat both wait."""
    current = CurrentNodeState(FIRST)
    waiting = [asyncio.create_task(current.wait_for_other_than(FIRST)) for _unused in range(3)]
    await asyncio.sleep(0)
    await current.update(SECOND)
    async with asyncio.timeout(5):
        assert await asyncio.gather(*waiting) == [SECOND] * 3


async def test_waiters_wait_while_the_state_is_unknown() -> None:
    current = CurrentNodeState(SECOND)
    await current.update(None)
    assert current.state is None
    waiting = asyncio.create_task(current.wait_for_other_than(FIRST))
    await asyncio.sleep(0)
    assert not waiting.done()
    await current.update(SECOND)
    assert await waiting == SECOND
