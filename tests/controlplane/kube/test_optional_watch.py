# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An optional kind: watched only while it is served, and forgotten after."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from controlplane.api.objects.resources import CUSTOM_RESOURCE_DEFINITION, DATA_VOLUME, Key
from controlplane.kube.cache import Store
from controlplane.kube.optional_watch import OptionalWatch
from controlplane.kube.watch import WatchCache

DEFINITION = b'{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"is":true}}'
GOING = b'{"metadata":{"name":"a","resourceVersion":"2"},"spec":{"is":false}}'
OBJECT = b'{"metadata":{"name":"x","namespace":"default","resourceVersion":"5"}}'


class Cache(Store):
    """Counts its runs; a run lists one object."""

    running = 0
    runs = 0

    async def run(self) -> None:
        self.running, self.runs = 1, self.runs + 1
        try:
            if self.resource is DATA_VOLUME:
                self.put(OBJECT)
            await asyncio.sleep(0)
            self.synced = True
            self.move(self.runs)
            await asyncio.Event().wait()
        finally:
            self.running = 0


class Stage:
    def __init__(self) -> None:
        self.definition, self.cache = Cache(CUSTOM_RESOURCE_DEFINITION), Cache(DATA_VOLUME)
        self.optional = OptionalWatch(
            cast(WatchCache, self.definition),
            cast(WatchCache, self.cache),
            "a",
            lambda raw: raw is not None and b'"is":true' in raw,
        )

    async def settle(self) -> None:
        for _unused in range(10):
            await asyncio.sleep(0)


@pytest.mark.parametrize("gone", ["changed", "removed"])
async def test_a_kind_is_watched_while_it_is_served(gone: str) -> None:
    stage = Stage()
    task = asyncio.create_task(stage.optional.run())
    await stage.settle()
    assert (stage.definition.running, stage.cache.runs, stage.optional.is_served) == (1, 0, False)
    stage.definition.put(DEFINITION)
    await stage.settle()
    assert (stage.cache.running, stage.optional.is_synced, len(stage.cache)) == (1, True, 1)
    if gone == "changed":
        stage.definition.put(GOING)
    else:
        stage.definition.remove(Key("", "a"))
    assert not stage.optional.is_synced
    await stage.settle()
    assert (stage.cache.running, stage.cache.synced, len(stage.cache)) == (0, False, 0)
    stage.definition.put(DEFINITION.replace(b'"1"', b'"3"'))
    await stage.settle()
    assert (stage.cache.runs, stage.optional.is_synced, len(stage.cache)) == (2, True, 1)
    task.cancel()
    await asyncio.wait({task})
    assert (stage.cache.running, stage.definition.running) == (0, 0)


async def test_an_error_of_the_watch_ends_the_process() -> None:
    stage = Stage()

    async def fail() -> None:
        raise RuntimeError("history was rewound")

    stage.cache.run = fail  # type: ignore[method-assign]
    stage.definition.put(DEFINITION)
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(stage.optional.run(), 5)


async def test_the_last_definition_counts_while_its_cache_is_not_synced() -> None:
    stage = Stage()
    assert (stage.optional.is_served, stage.optional.is_absent) == (False, False)
    task = asyncio.create_task(stage.optional.run())
    await stage.settle()
    assert (stage.optional.is_served, stage.optional.is_absent) == (False, True)
    stage.definition.put(DEFINITION)
    await stage.settle()
    stage.definition.synced = False
    await stage.settle()
    assert (stage.optional.is_synced, stage.optional.is_absent, stage.cache.running) == (True, False, 1)
    task.cancel()
    await asyncio.wait({task})


async def test_each_change_of_availability_is_announced() -> None:
    stage, announced = Stage(), list[tuple[bool, bool]]()
    stage.optional.on_change(lambda: announced.append((stage.optional.is_absent, stage.optional.is_synced)))
    task = asyncio.create_task(stage.optional.run())
    await stage.settle()
    stage.definition.put(DEFINITION)
    await stage.settle()
    stage.cache.move(7)
    stage.cache.synced = False
    stage.cache.synced = True
    stage.definition.remove(Key("", "a"))
    await stage.settle()
    absent, unknown, known = (True, False), (False, False), (False, True)
    assert announced == [absent, unknown, known, unknown, known, absent]
    task.cancel()
    await asyncio.wait({task})
