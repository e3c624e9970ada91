# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances can be migrated now, and in which words the others cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.objects.migration import FINAL, PHASES
from controlplane.api.objects.phase import FAILED, RUNNING, SCHEDULING, SUCCEEDED, UNKNOWN
from controlplane.api.objects.resources import Key
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import ApiError
from controlplane.virt_api.admission.migratable import PAGE_LIMIT, why_not_migratable
from tests.controlplane.kube.fake_api import FakeApi, a_client, status
from tests.controlplane.virt_api.moving import IN_NS, MIGRATIONS, TEMPLATE, UNFIT, put_migration, put_vmi

WEB = Key("ns", "web")


async def ask(arrange: Callable[[FakeApi], Any], vmi: Key = WEB) -> str | None:
    api = FakeApi()
    arrange(api)
    async with a_client(api) as client:
        return await why_not_migratable(client, vmi)


@pytest.mark.parametrize("phase", ["", SCHEDULING, RUNNING, UNKNOWN])
async def test_one_that_lives_can_be_migrated(phase: str) -> None:
    """As upstream: one that does not run yet is waited for."""
    assert await ask(lambda api: put_vmi(api, phase)) is None


@pytest.mark.parametrize("value", ["True", "Unknown"])
async def test_whoever_nobody_says_cannot_move_can(value: str) -> None:
    assert await ask(lambda api: put_vmi(api, conditions=[{**UNFIT, "status": value}])) is None


async def test_one_that_is_not_there_cannot() -> None:
    assert "does not exist" in str(await ask(lambda api: None))
    assert str(await ask(lambda api: None)).startswith('the VMI "ns/web"')


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
async def test_one_whose_run_is_over_cannot(phase: str) -> None:
    assert await ask(lambda api: put_vmi(api, phase)) == "Cannot migrate VMI in finalized state."


async def test_one_that_cannot_move_says_why() -> None:
    why = await ask(lambda api: put_vmi(api, conditions=[UNFIT]))

    assert why == "Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: its disk stays"


async def test_a_long_story_is_cut() -> None:
    why = await ask(lambda api: put_vmi(api, conditions=[UNFIT | {"message": "x" * 5000}]))

    assert len(str(why)) < 1000


@pytest.mark.parametrize("phase", PHASES)
async def test_there_is_one_unfinished_migration_of_it_at_a_time(phase: str) -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        put_migration(api, "first", phase)

    why = await ask(arrange)

    if phase in FINAL:
        assert why is None
    else:
        assert str(why).startswith("in-flight migration detected. Active migration job (uid-2) is currently already")
        assert "delete first" in str(why)


async def test_a_migration_of_another_is_none_of_it() -> None:
    """Long names may share a label."""

    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        put_migration(api, "first", vmi="other")

    assert await ask(arrange) is None


async def test_the_last_page_is_read_too() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        for number in range(PAGE_LIMIT):
            put_migration(api, f"a-{number:03}", "Succeeded")
        put_migration(api, "z", "Running")

    assert "delete z," in str(await ask(arrange))


async def test_one_that_cannot_be_read_is_in_nobodys_way() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        api.put(f"{MIGRATIONS}/odd", {"spec": {"vmiName": 7}})
        put_migration(api, "z", "Running")

    assert "delete z," in str(await ask(arrange))


async def test_of_all_migrations_only_its_own_are_asked_for() -> None:
    api, name = FakeApi(), "a" * 100
    api.put(f"{IN_NS}/virtualmachineinstances/{name}", {**TEMPLATE, "status": {"phase": "Running"}})
    async with a_client(api) as client:
        assert await why_not_migratable(client, Key("ns", name)) is None

    asked = [path for _unused, path, *_more in api.seen if path.startswith(MIGRATIONS)]
    assert [f"labelSelector=kubevirt.io%2Fvmi-name%3D{vmi_label_value(name)}" in path for path in asked] == [True]


async def test_what_is_not_known_is_not_guessed() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        api.faults.append(("GET", MIGRATIONS, status(500, "InternalError", "etcd is away")))

    with pytest.raises(ApiError):
        await ask(arrange)
