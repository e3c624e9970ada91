# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a door is open, and who is told of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.virt_handler.migration import incoming_tunnels as doors_module
from controlplane.virt_handler.migration.incoming_tunnels import IncomingTunnels
from controlplane.virt_handler.migration.peer import certificate_annotation
from tests.controlplane.virt_handler.migration.ends import SECONDS, SOURCE, TARGET, pair_of

MOVING = MigrationState(migration_uid="m", source_node=SOURCE)


class Nodes:
    """All of them announce the source's certificate."""

    async def get(self, *_unused: object) -> dict[str, Any]:
        return {"metadata": {"annotations": certificate_annotation(pair_of(SOURCE))}}


def some_doors(changed: Callable[[str], None]) -> IncomingTunnels:
    nodes: Any = Nodes()
    return IncomingTunnels(pair_of(TARGET), lambda: "127.0.0.1", nodes, nodes, changed=changed)


async def test_one_that_nobody_closes_has_an_end_and_its_instance_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors_module, "DOOR_SECONDS", 0)
    told = asyncio.Queue[str]()
    doors = some_doors(told.put_nowait)
    await doors.open("vmi", MOVING)
    assert doors.door("m") is not None
    async with asyncio.timeout(SECONDS):
        assert await told.get() == "vmi"
        for closing in asyncio.all_tasks() - {asyncio.current_task()}:
            await closing
    assert doors.door("m") is None


async def test_the_time_of_one_that_was_closed_ends_none_that_is_opened_later() -> None:
    doors = some_doors(lambda _unused: None)
    await doors.open("vmi", MOVING)
    timer = doors._open["m"].timer
    await doors.close("m")
    assert timer.cancelled()
