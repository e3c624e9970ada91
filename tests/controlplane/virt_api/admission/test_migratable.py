# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMIs can be migrated now, and why the others cannot."""

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
async def test_a_live_vmi_can_be_migrated(phase: str) -> None:
    """As upstream: the migration waits until the VMI runs."""
    assert await ask(lambda api: put_vmi(api, phase)) is None


@pytest.mark.parametrize("value", ["True", "Unknown"])
async def test_only_live_migratable_false_forbids_a_migration(value: str) -> None:
    assert await ask(lambda api: put_vmi(api, conditions=[{**UNFIT, "status": value}])) is None


async def test_a_missing_vmi_cannot_be_migrated() -> None:
    assert "does not exist" in str(await ask(lambda api: None))
    assert str(await ask(lambda api: None)).startswith('the VMI "ns/web"')


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED])
async def test_a_final_vmi_cannot_be_migrated(phase: str) -> None:
    assert await ask(lambda api: put_vmi(api, phase)) == "Cannot migrate VMI in finalized state."


async def test_the_reason_comes_from_the_condition() -> None:
    why = await ask(lambda api: put_vmi(api, conditions=[UNFIT]))

    assert why == "Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: its disk stays"


async def test_a_long_message_is_cut() -> None:
    why = await ask(lambda api: put_vmi(api, conditions=[UNFIT | {"message": "x" * 5000}]))

    assert len(str(why)) < 1000


@pytest.mark.parametrize("phase", PHASES)
async def test_an_unfinished_migration_forbids_another(phase: str) -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        put_migration(api, "first", phase)

    why = await ask(arrange)

    if phase in FINAL:
        assert why is None
    else:
        assert str(why).startswith("in-flight migration detected. Active migration job (uid-2) is currently already")
        assert "delete first" in str(why)


async def test_a_migration_of_another_vmi_does_not_count() -> None:
    """Long names may share a label."""

    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        put_migration(api, "first", vmi="other")

    assert await ask(arrange) is None


async def test_all_pages_are_read() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        for number in range(PAGE_LIMIT):
            put_migration(api, f"a-{number:03}", "Succeeded")
        put_migration(api, "z", "Running")

    assert "delete z," in str(await ask(arrange))


async def test_an_unreadable_migration_is_skipped() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        api.put(f"{MIGRATIONS}/odd", {"spec": {"vmiName": 7}})
        put_migration(api, "z", "Running")

    assert "delete z," in str(await ask(arrange))


async def test_only_migrations_of_the_vmi_are_listed() -> None:
    api, name = FakeApi(), "a" * 100
    api.put(f"{IN_NS}/virtualmachineinstances/{name}", {**TEMPLATE, "status": {"phase": "Running"}})
    async with a_client(api) as client:
        assert await why_not_migratable(client, Key("ns", name)) is None

    paths = [path for _unused, path, *_more in api.seen if path.startswith(MIGRATIONS)]
    assert [f"labelSelector=kubevirt.io%2Fvmi-name%3D{vmi_label_value(name)}" in path for path in paths] == [True]


async def test_an_api_error_is_raised() -> None:
    def arrange(api: FakeApi) -> None:
        put_vmi(api)
        api.faults.append(("GET", MIGRATIONS, status(500, "InternalError", "etcd is away")))

    with pytest.raises(ApiError):
        await ask(arrange)
