# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import Unavailable
from controlplane.virt_handler.listed import LONGEST_RETRY_SECONDS, LOOK_SECONDS, keep_listed
from controlplane.virt_handler.node import serving_patch
from controlplane.virt_node.kvm import KvmFinding
from tests.controlplane.kube.virtual import MemoryApi

KEY = Key("", "node-1")


class Ended(Exception):
    """The story is over."""


class Stage:
    """A Node, and what happens at each of the pauses."""

    def __init__(self, *happens: Any) -> None:
        self.api = MemoryApi()
        self.happens = list(happens)
        self.waits: list[float] = []

    async def play(self) -> None:
        await self.api.create(NODE, "", {"metadata": {"name": "node-1"}})
        self.api.writes.clear()
        kvm = KvmFinding(is_usable=True)
        with pytest.raises(Ended):
            await keep_listed(self.api, "node-1", lambda: serving_patch(kvm, 0.0), asyncio.Event(), wait=self.wait)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        self.waits.append(seconds)
        if not self.happens:
            raise Ended
        self.happens.pop(0)(self)

    def taken_off(self) -> None:
        self.api.objects["nodes", KEY]["metadata"]["labels"]["kubevirt.io/schedulable"] = "false"

    def fails(self) -> None:
        self.api.failing = Unavailable("gone")

    def works(self) -> None:
        self.api.failing = None

    def nothing(self) -> None:
        pass

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.api.objects["nodes", KEY]["metadata"]["labels"])


async def test_the_node_is_labelled_once_and_then_only_looked_at() -> None:
    stage = Stage(Stage.nothing, Stage.nothing)
    await stage.play()

    assert stage.labels["kubevirt.io/schedulable"] == "true"
    assert len(stage.api.writes) == 1
    assert stage.waits == [LOOK_SECONDS] * 3


async def test_a_node_that_was_taken_off_the_list_is_put_on_it_again() -> None:
    stage = Stage(Stage.taken_off, Stage.nothing)
    await stage.play()

    assert stage.labels["kubevirt.io/schedulable"] == "true"
    assert len(stage.api.writes) == 2


async def test_it_is_tried_until_it_works_ever_less_often(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Stage.fails, *[Stage.nothing] * 7, Stage.works)
    await stage.play()

    assert stage.waits == [LOOK_SECONDS, 1, 2, 4, 8, 16, LONGEST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, 30, LOOK_SECONDS]


async def test_it_looks_at_once_when_it_is_heard_again_after_a_silence() -> None:
    api, resumed = MemoryApi(), asyncio.Event()
    await api.create(NODE, "", {"metadata": {"name": "node-1"}})
    kvm = KvmFinding(is_usable=True)
    keeping = asyncio.create_task(keep_listed(api, "node-1", lambda: serving_patch(kvm, 0.0), resumed))
    await settle()
    api.objects["nodes", KEY]["metadata"]["labels"]["kubevirt.io/schedulable"] = "false"

    resumed.set()
    await settle()

    assert api.objects["nodes", KEY]["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"
    assert not resumed.is_set()
    keeping.cancel()
    await asyncio.wait({keeping})


async def settle() -> None:
    for _unused in range(10):
        await asyncio.sleep(0)
