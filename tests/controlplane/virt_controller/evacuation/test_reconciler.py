# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance whose guest has to leave its node, on a store with the API server's rules."""

from __future__ import annotations

import pytest
from kubevirt_api.names import EVACUATION_MIGRATION

from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.engine.errors import Unavailable
from controlplane.engine.reconcile import reconcile
from tests.controlplane.virt_controller.migration.stage import WEB, Stage
from tests.support.store import Json

STRATEGY = {"evictionStrategy": "LiveMigrate"}


@pytest.fixture
async def stage() -> Stage:
    stage = Stage()
    await stage.run_guest(spec=STRATEGY)
    stage.tell_instance({"evacuationNodeName": "node-1"})
    return stage


def migrations(stage: Stage) -> list[Json]:
    return [body for _key, body in stage.store.list(VIRTUAL_MACHINE_INSTANCE_MIGRATION)]


async def evacuate(stage: Stage) -> None:
    await reconcile(stage.evacuation, WEB)
    stage.catch_up()


async def test_an_evacuated_instance_gets_one_migration(stage: Stage) -> None:
    await evacuate(stage)
    await evacuate(stage)
    (made,) = migrations(stage)
    assert made["metadata"]["name"].startswith("kubevirt-evacuation-")
    assert made["metadata"]["annotations"] == {EVACUATION_MIGRATION: "node-1"}
    assert made["spec"] == {"vmiName": "web", "priority": "system-critical"}


async def test_two_leaders_create_one_migration(stage: Stage) -> None:
    other = Stage(stage.store)
    await reconcile(stage.evacuation, WEB)
    await reconcile(other.evacuation, WEB)
    assert len(migrations(stage)) == 1


async def test_own_writes_count_before_the_cache_shows_them(stage: Stage) -> None:
    await reconcile(stage.evacuation, WEB)
    await reconcile(stage.evacuation, WEB)
    assert stage.calls.count("create VirtualMachineInstanceMigration") == 1


async def test_a_withdrawn_evacuation_creates_no_migration(stage: Stage) -> None:
    cancel = {"status": {"evacuationNodeName": None}}
    key, resource = WEB, next(cache for cache in stage.caches if cache.kind == "VirtualMachineInstance")
    stage.store.patch(resource, key, cancel, subresource="status")
    await reconcile(stage.evacuation, WEB)
    assert migrations(stage) == []


async def test_a_failed_migration_is_followed_by_another_after_the_back_off(stage: Stage) -> None:
    await evacuate(stage)
    await stage.work()
    stage.end_pod(stage.target)
    await stage.work()
    outcome = await reconcile(stage.evacuation, WEB)
    assert outcome.requeue_after == 20
    assert stage.reasons.count("MigrationBackoff") == 1
    assert len(migrations(stage)) == 1
    stage.clock.advance(20)
    await evacuate(stage)
    assert [body["metadata"]["name"][-2:] for body in migrations(stage)] == ["-1", "-2"]
    assert stage.reasons.count("MigrationBackoff") == 1


async def test_a_taken_name_is_reported(stage: Stage) -> None:
    uid = stage.instance()["metadata"]["uid"].replace("-", "")[:8]
    body = {"metadata": {"name": f"kubevirt-evacuation-{uid}-1"}, "spec": {"vmiName": "decoy"}}
    stage.store.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, "default", body)
    stage.catch_up()
    await reconcile(stage.evacuation, WEB)
    assert stage.reasons.count("FailedCreate") == 1


async def test_nothing_is_decided_before_the_caches_are_synced(stage: Stage) -> None:
    stage.caches[NODE].synced = False
    with pytest.raises(Unavailable):
        stage.evacuation.observe(WEB)


async def test_a_deleted_vmi_needs_nothing(stage: Stage) -> None:
    assert stage.evacuation.observe(Key("default", "nobody")) is None
