# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that writes memory faster than it is sent: its migration pauses it, and it resumes whatever happens."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.migration_state import MigrationConfiguration, MigrationState
from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life, State
from controlplane.hypervisor.domain import Progress
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_handler.launchers.ports import TransferRequest
from controlplane.virt_handler.migration.convergence import Watch
from controlplane.virt_handler.migration.sender import Sender
from controlplane.virt_handler.vmi.ports import Writes
from tests.controlplane.virt_launcher.launched import VMI, last_count, until
from tests.controlplane.virt_launcher.launcher_pod import Images
from tests.controlplane.virt_launcher.migration_pods import BUSY, POD_UID, Migration, migration_pods
from tests.controlplane.virt_launcher.test_migration import (
    GOES_ON,
    MIGRATED,
    MIGRATES,
    SECONDS,
    break_off,
    counts_on,
    guest_at,
    let_pass,
)

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

SLOW = MigrationState(
    migration_uid="migration",
    target_pod_uid=POD_UID,
    migration_configuration=MigrationConfiguration(
        bandwidth_per_migration="10Mi", completion_timeout_per_gib=25, allow_workload_disruption=True
    ),
)
"""The guest writes several times as much."""
PAUSED_BY_USER = State(Life.PAUSED, "user")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def moved(
    images: Images, tmp_path_factory: pytest.TempPathFactory, libvirt_loop: None
) -> AsyncIterator[Migration]:
    """One guest for both tests. The second migrates it."""
    async with migration_pods(images, tmp_path_factory.mktemp("busy"), BUSY, data_bytes=1 << 20) as pods:
        await until(lambda: "\nbusy" in pods.source.console, "guest that is busy", pods.source)
        yield pods


async def do_nothing() -> None:
    return None


BREAKS = ("given up", "memory", "control", "client", "QEMU of the target")


async def test_a_guest_paused_by_a_failed_migration_resumes(moved: Migration) -> None:
    """After each kind of failure libvirt resumes it, or reports that its migration paused it.

    libvirt takes a pause after the end for a user's. A guest that a user paused stays paused.
    """
    guest = await guest_at(moved.at_source)
    for failure in BREAKS:
        await stopped_halfway(moved, failure)
        source, target = await moved.states()
        assert source is not None
        assert source == MIGRATES or source.life is Life.RUNNING, (failure, source)
        assert (target, moved.qemus()) == (None, (1, 0)), failure
        if source == MIGRATES:
            await guest.resume()
        await counts_on(moved)

    watch = Watch(guest, MigrationConfiguration(), time, do_nothing)
    await watch.stop()
    assert await guest.state() == PAUSED_BY_USER
    await watch.let_go_on()
    await counts_on(moved)

    await guest.pause()
    await stopped_halfway(moved, "client")
    assert await moved.states() == (PAUSED_BY_USER, None)
    await guest.resume()


@pytest.mark.nightly
async def test_a_guest_that_cannot_be_sent_while_running_is_paused_and_resumes_at_its_target(moved: Migration) -> None:
    let_pass(moved)
    guest, target = await moved.dial()
    states: list[State] = []
    remaining: list[int] = []

    async def write_stop() -> None:
        states.append(await guest.state())

    def progressed(_key: Key, seen: Progress | None) -> None:
        remaining.append(0 if seen is None else seen.remaining)

    order = TransferRequest(
        decode_vmi(VMI), SLOW, "source-pod", guest, is_paused_by_user=False, writes=Writes(do_nothing, write_stop)
    )
    sender: Any = Sender
    await sender(None, None, None, time, directory="", progressed=progressed)._send(order, target)

    assert [state.life for state in states] == [Life.RUNNING]
    assert any(later > earlier > 0 for earlier, later in itertools.pairwise(remaining)), "it was sent more than once"
    assert await moved.states() == (MIGRATED, GOES_ON)
    assert moved.qemus() == (0, 1)
    await until(lambda: last_count(moved.target.console) > last_count(moved.source.console), "count", moved.target)


async def stopped_halfway(moved: Migration, what: str) -> None:
    """Pause a guest with part of its memory sent, break the migration, and wait until libvirt has ended it."""
    let_pass(moved)
    moved.relays["target"].also = [moved.relays["source"]] if what == "client" else []
    moved.valve.is_full.clear()
    moved.valve.is_open.clear()
    work = asyncio.create_task(moved.send())
    async with asyncio.timeout(SECONDS):
        await moved.valve.is_full.wait()
    guest = await guest_at(moved.at_source)
    before = await guest.state()
    await guest.stop_to_send()
    assert await guest.state() == (before if before.life is Life.PAUSED else MIGRATES)
    await break_off(moved, what)
    with pytest.raises(HypervisorError):
        await work
    await moved.until_target(None)
    await moved.until_given_up()
