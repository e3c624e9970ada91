# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a tunnel server is open, and which VMI its end enqueues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.virt_handler.migration import incoming_tunnels as tunnels_module
from controlplane.virt_handler.migration.incoming_tunnels import IncomingTunnels
from controlplane.virt_handler.migration.peer import certificate_annotation
from tests.controlplane.virt_handler.migration.ends import SECONDS, SOURCE, TARGET, pair_of

MOVING = MigrationState(migration_uid="m", source_node=SOURCE)


class Nodes:
    """Nodes that all announce the source's certificate."""

    async def get(self, *_unused: object) -> dict[str, Any]:
        return {"metadata": {"annotations": certificate_annotation(pair_of(SOURCE))}}


def some_tunnels(changed: Callable[[str], None]) -> IncomingTunnels:
    nodes: Any = Nodes()
    return IncomingTunnels(pair_of(TARGET), lambda: "127.0.0.1", nodes, nodes, changed=changed)


async def test_an_unused_tunnel_closes_after_its_timeout_and_enqueues_the_vmi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels_module, "OPEN_SECONDS", 0)
    enqueued = asyncio.Queue[str]()
    tunnels = some_tunnels(enqueued.put_nowait)
    await tunnels.open("vmi", MOVING)
    assert tunnels.address("m") is not None
    async with asyncio.timeout(SECONDS):
        assert await enqueued.get() == "vmi"
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await task
    assert tunnels.address("m") is None


async def test_a_closed_tunnel_cancels_its_timeout() -> None:
    tunnels = some_tunnels(lambda _unused: None)
    await tunnels.open("vmi", MOVING)
    timer = tunnels._open["m"].timer
    await tunnels.close("m")
    assert timer.cancelled()
