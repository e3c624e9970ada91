# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches and other sources through the whole process: what the API server sends arrives at the runners."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.api.objects.data_volume import DEFINITION
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    KUBEVIRT,
    NODE,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from controlplane.engine.runner import Runner
from controlplane.kube.client import object_path
from controlplane.virt_controller import process
from controlplane.virt_controller.workload_update.controller import GATHER_SECONDS
from tests.controlplane.kube.late_api import LateApi
from tests.controlplane.virt_controller.data_volumes import DISK
from tests.controlplane.virt_controller.running import NAMESPACE, SERVED, WEB, running
from tests.controlplane.virt_controller.watched_cluster import Enqueued

KUBEVIRT_KEY = Key(NAMESPACE, "kubevirt")
DELAYS: dict[str, float] = {}


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> Enqueued:
    """The controllers and keys that were enqueued since the set was cleared. Nothing is reconciled."""
    recorded: Enqueued = set()

    class Recording(Runner[Any, Any, Any]):
        def add(self, key: Key, *, after: float = 0.0) -> None:
            recorded.add((self.name, str(key)))
            DELAYS[self.name] = after

        async def run(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(process, "Runner", Recording)
    return recorded


async def test_the_end_of_data_volume_support_enqueues_their_users(enqueued: Enqueued) -> None:
    api = LateApi()
    api.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
    api.set(VIRTUAL_MACHINE, WEB, {"spec": {"template": {"spec": {"volumes": [DISK]}}}})
    api.set(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": {"volumes": [DISK]}})
    expected = {("vm", "default/web"), ("vmi", "default/web")}
    async with running(api) as virt_controller:
        await virt_controller.settle()
        enqueued.clear()
        api.drop(object_path(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION)))
        await virt_controller.until(lambda: enqueued >= expected)
        await virt_controller.settle()
    assert enqueued == expected


async def test_workload_updates_are_delayed(enqueued: Enqueued) -> None:
    api = LateApi()
    api.set(KUBEVIRT, KUBEVIRT_KEY, {"spec": {}})
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: ("workload-update", str(KUBEVIRT_KEY)) in enqueued)
    assert (DELAYS["workload-update"], DELAYS["kubevirt"]) == (GATHER_SECONDS, 0.0)


async def test_a_new_leader_enqueues_the_quarantine(enqueued: Enqueued) -> None:
    api = LateApi()
    assert api.find(NODE, Key("", "node-1")) is None, "no list enqueues the judgement"
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: ("quarantine", "") in enqueued)
