# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio

from controlplane.links.node.messages import NodeState
from controlplane.links.node.offer import Offer

FIRST, SECOND = NodeState(), NodeState(present=("kvm",))


async def test_a_change_is_told_once() -> None:
    offer = Offer(FIRST)
    assert await offer.other_than(None) == FIRST
    waiting = asyncio.create_task(offer.other_than(FIRST))
    await asyncio.sleep(0)
    await offer.become(FIRST)
    await asyncio.sleep(0)
    assert not waiting.done()
    await offer.become(SECOND)
    assert await waiting == SECOND


async def test_a_change_is_told_to_everybody_who_waits() -> None:
    """Whoever minds the devices, and whoever lists the node."""
    offer = Offer(FIRST)
    waiting = [asyncio.create_task(offer.other_than(FIRST)) for _unused in range(3)]
    await asyncio.sleep(0)
    await offer.become(SECOND)
    async with asyncio.timeout(5):
        assert await asyncio.gather(*waiting) == [SECOND] * 3


async def test_while_nobody_knows_there_is_nothing_to_tell() -> None:
    offer = Offer(SECOND)
    await offer.become(None)
    assert offer.state is None
    waiting = asyncio.create_task(offer.other_than(FIRST))
    await asyncio.sleep(0)
    assert not waiting.done()
    await offer.become(SECOND)
    assert await waiting == SECOND
