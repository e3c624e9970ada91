# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results and waits of kubevirt_migration_info."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import NotFound, TimedOut
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_migrations
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import Migrate
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_migrations import MIGRATIONS


@pytest.fixture
def several(world: World) -> World:
    for name, vmi in (("m1", "web"), ("m2", "database"), ("m3", "web")):
        world.put(MIGRATIONS, {"metadata": {"name": name, "namespace": "default"}, "spec": {"vmiName": vmi}})
    fake_migrations.end(world, "m1")
    return world


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["m1", "m2", "m3"]),
        ({"namespace": "other"}, []),
        ({"vm": "web"}, ["m1", "m3"]),
        ({"unfinished": True}, ["m2", "m3"]),
        ({"vm": "web", "unfinished": True, "namespace": "default"}, ["m3"]),
        ({"name": "m2"}, ["m2"]),
        ({"name": "m2", "namespace": "default"}, ["m2"]),
        ({"name": "m9", "namespace": "default"}, []),
    ],
)
def test_the_result(read: Migrate, several: World, options: dict[str, Any], names: list[str]) -> None:
    migrations = read(**options)
    assert (migrations["api_found"], [item["metadata"]["name"] for item in migrations["resources"]]) == (True, names)


def test_a_cluster_without_the_kind_is_reported(read: Migrate, world: World) -> None:
    world.kubevirt_installed = False
    assert read()["api_found"] is False
    with pytest.raises(NotFound):
        read(wait=True)


def test_waiting_ends_when_all_migrations_are_over(read: Migrate, several: World) -> None:
    timers = [threading.Timer(0.1, fake_migrations.end, (several, name)) for name in ("m2", "m3")]
    for timer in timers:
        timer.start()
    migrations = read(unfinished=True, wait=True)["resources"]
    assert [item["status"]["phase"] for item in migrations] == ["Succeeded", "Succeeded"]


def test_a_migration_that_is_not_over_in_time_is_named(read: Migrate, several: World) -> None:
    fake_migrations.move(several, "m3", "Scheduling")
    with pytest.raises(TimedOut, match="m3 is not over after 1 s: it is Scheduling") as caught:
        read(name="m3", namespace="default", wait=True, wait_timeout=1)
    assert caught.value.facts["phase"] == "Scheduling"


def test_a_migration_created_later_is_waited_for(read: Migrate, world: World) -> None:
    with pytest.raises(TimedOut, match="m9 is not over after 1 s: it does not exist"):
        read(name="m9", namespace="default", wait=True, wait_timeout=1)


def test_a_condition_is_named_as_what_was_waited_for(read: Migrate, several: World) -> None:
    wanted = {"type": "migrationAbortRequested"}
    with pytest.raises(TimedOut, match="m3: its condition migrationAbortRequested is not True after 1 s"):
        read(name="m3", namespace="default", wait=True, wait_timeout=1, wait_condition=wanted)


def test_check_mode_does_not_wait(read: Migrate, several: World) -> None:
    assert len(read(unfinished=True, wait=True, check_mode=True)["resources"]) == 2
    assert read(name="m9", namespace="default", wait=True, check_mode=True)["resources"] == []
    several.kubevirt_installed = False
    assert read(wait=True, check_mode=True)["api_found"] is False


def test_a_condition_that_can_never_come_is_reported_at_once(read: Migrate, several: World) -> None:
    wanted = {"type": "migrationAbortRequested"}
    with pytest.raises(TimedOut, match=r"it is over \(Succeeded\) without its condition migrationAbortRequested"):
        read(name="m1", namespace="default", wait=True, wait_condition=wanted)
    migrations = read(name="m3", namespace="default", wait=True, wait_condition={**wanted, "status": "False"})
    assert len(migrations["resources"]) == 1
