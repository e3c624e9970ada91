# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio

from controlplane.links.node.messages import NodeState
from controlplane.links.node.node_state import CurrentNodeState

FIRST, SECOND = NodeState(), NodeState(present=("kvm",))


async def test_a_change_is_told_once() -> None:
    offer = CurrentNodeState(FIRST)
    assert await offer.wait_for_other_than(None) == FIRST
    waiting = asyncio.create_task(offer.wait_for_other_than(FIRST))
    await asyncio.sleep(0)
    await offer.update(FIRST)
    await asyncio.sleep(0)
    assert not waiting.done()
    await offer.update(SECOND)
    assert await waiting == SECOND


async def test_a_change_is_told_to_everybody_who_waits() -> None:
    """Whoever minds the devices, and whoever lists the node."""
    offer = CurrentNodeState(FIRST)
    waiting = [asyncio.create_task(offer.wait_for_other_than(FIRST)) for _unused in range(3)]
    await asyncio.sleep(0)
    await offer.update(SECOND)
    async with asyncio.timeout(5):
        assert await asyncio.gather(*waiting) == [SECOND] * 3


async def test_while_nobody_knows_there_is_nothing_to_tell() -> None:
    offer = CurrentNodeState(SECOND)
    await offer.update(None)
    assert offer.state is None
    waiting = asyncio.create_task(offer.wait_for_other_than(FIRST))
    await asyncio.sleep(0)
    assert not waiting.done()
    await offer.update(SECOND)
    assert await waiting == SECOND
