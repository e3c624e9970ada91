# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is woken for what migrations leave, where a watch was broken, a leader is new, or a Pod ends."""

from __future__ import annotations

import pytest
from kubevirt_api.names import MIGRATION_TARGET_NODE

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.virt_controller.migration_wakes import connect_orphans
from tests.controlplane.virt_controller.migration.stage import JOB, WEB, Stage


def follow(stage: Stage) -> list[Key]:
    """Return whom is woken from now on."""
    woken: list[Key] = []
    migrations, vmis, pods = (
        stage.overlays[one] for one in (VIRTUAL_MACHINE_INSTANCE_MIGRATION, VIRTUAL_MACHINE_INSTANCE, POD)
    )
    connect_orphans(migrations=migrations, vmis=vmis, pods=pods, wake=woken.append)
    return woken


async def test_one_that_was_replaced_under_its_name_while_a_watch_was_broken() -> None:
    stage = Stage()
    await stage.until("Running")
    woken = follow(stage)
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"finalizers": None}})
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)
    body = {"metadata": {"name": JOB.name}, "spec": {"vmiName": "another"}}
    stage.store.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, "default", body)
    stage.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION].relist()
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    assert woken == [WEB]


async def test_the_target_pod_ends_while_nothing_else_changes() -> None:
    stage = Stage()
    await stage.until("Running")
    woken = follow(stage)
    stage.end_pod(stage.target)
    assert set(woken) == {WEB}


@pytest.mark.parametrize("state", ["under way", "over"])
async def test_a_leader_is_new(state: str) -> None:
    stage = Stage()
    await stage.until("Running")
    if state == "over":
        stage.fail()
        stage.lose_pod(stage.target)
    assert MIGRATION_TARGET_NODE in stage.instance()["metadata"]["labels"]
    late = Stage.__new__(Stage)
    super(Stage, late).__init__(tuple(stage.caches), stage.store)
    woken = follow(late)
    late.start()
    late.catch_up()
    assert set(woken) == {WEB}
