# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration between two launchers, complete or broken: how libvirt and QEMU react to each kind of failure.

docs/adr/0016 relies on this: while the source's QEMU exists, the target's guest has never run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import re
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.guest import Guest
from controlplane.virt_handler.migration.source_exit import SourceExit
from controlplane.virt_handler.vmi.world import Traces
from tests.controlplane.virt_launcher.launched import UID, until
from tests.controlplane.virt_launcher.launcher_pod import Images
from tests.controlplane.virt_launcher.moved import EPOCH, POD_UID, Moving, moving
from tests.controlplane.virt_launcher.toll import Passing

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

RUNS, GOES_ON = State(Life.RUNNING, "booted"), State(Life.RUNNING, "unpaused")
CANCELED = State(Life.RUNNING, "migration_canceled")
MIGRATES, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
WHOLE = State(Life.PAUSED, "user")
"""State at the target, whatever the source knows."""
SECONDS = 60.0


@pytest_asyncio.fixture(loop_scope="session")
async def moved(images: Images, tmp_path: pathlib.Path) -> AsyncIterator[Moving]:
    async with moving(images, tmp_path) as migration:
        yield migration


def last_count(console: str) -> int:
    return max(map(int, re.findall(r"virtops-guest: counter ([0-9]+)", console)), default=0)


async def counts_on(moved: Moving) -> None:
    """Check that the source's guest runs and the target's has never run."""
    before = last_count(moved.source.console)
    await until(lambda: last_count(moved.source.console) > before, "guest that counts on", moved.source)
    assert moved.target.console == ""


async def test_a_migrated_guest_keeps_memory_and_disks_and_can_plug_a_cpu(moved: Moving) -> None:
    await until(lambda: "on sda: " in moved.source.console, "guest that has written", moved.source)
    (root,) = set(re.findall(r"on vda: [0-9a-f]{64}", moved.source.console))
    (data,) = set(re.findall(r"on sda: [0-9a-f]{64}", moved.source.console))
    there = await moved.send()

    assert await moved.states() == (MIGRATED, WHOLE)
    assert moved.qemus() == (0, 1)
    assert moved.target.console == "", "it waits to be let go on"
    assert moved.source.process is not None
    assert moved.source.process.poll() is None, "its launcher is virt-controller's to end"
    identity = (await there.described(read_domain)).identity
    assert identity is not None
    assert (identity.uid, identity.pod_uid, identity.epoch) == (UID, POD_UID, EPOCH)

    await there.resume()
    assert await moved.states() == (MIGRATED, GOES_ON)
    await until(lambda: last_count(moved.target.console) > last_count(moved.source.console), "count", moved.target)
    counts = re.findall(r"counter ([0-9]+)", moved.target.console)
    assert int(counts[0]) in (last_count(moved.source.console), last_count(moved.source.console) + 1)
    console = len(moved.target.console)
    for disk in (root, data):
        await until(lambda disk=disk: disk in moved.target.console[console:], f"what was {disk}", moved.target)

    assert (await there.described(read_domain)).vcpus == 1
    await there.set_vcpus(2)
    assert (await there.described(read_domain)).vcpus == 2
    await until(lambda: "with 2 CPUs" in moved.target.console[console:], "guest with two CPUs", moved.target)


@dataclasses.dataclass(frozen=True)
class Break:
    """How a migration is broken, at a message or with part of the memory sent, and the result."""

    name: str
    at: tuple[str, str, bool] | None = None
    """Whose libvirtd, which step, and whether the answer is lost and not the call."""
    is_client: bool = False
    """The client ends: both of its connections are cut."""
    source: State = RUNS
    target: State | None = None


BREAKS = (
    Break("given up"),
    Break("memory"),
    Break("control"),
    Break("client", is_client=True),
    Break("QEMU of the target"),
    Break("the target is never asked to prepare", ("target", "prepare", False)),
    Break("its answer to that is lost", ("target", "prepare", True)),
    Break("the client ends when all is sent", ("source", "perform", True), is_client=True, source=MIGRATES),
    Break("the target does not hear that it is all", ("target", "finish", False), source=CANCELED),
    Break("and the client ends at that", ("target", "finish", False), is_client=True, source=MIGRATES),
)
LATE_BREAKS = (
    Break("the target has all, and cannot say so", ("target", "finish", True), source=CANCELED, target=WHOLE),
    Break("and the client ends at that", ("target", "finish", True), is_client=True, source=MIGRATES, target=WHOLE),
)
"""The target has a complete guest, which ends with its launcher."""


async def test_a_migration_broken_before_the_target_is_complete_stays_at_the_source(moved: Moving) -> None:
    """Each kind of failure in turn. In the end the guest migrates."""
    for case in BREAKS:
        await stays(moved, case)
    let_pass(moved)
    await (await moved.send()).resume()
    await until(lambda: last_count(moved.target.console), "guest that goes on", moved.target)


@pytest.mark.parametrize("case", LATE_BREAKS, ids=lambda case: case.name)
async def test_a_migration_broken_before_the_source_hears_of_completion_stays_at_the_source(
    moved: Moving, case: Break
) -> None:
    await stays(moved, case)
    await (await guest_at(moved.at_target)).destroy()
    await counts_on(moved)


async def stays(moved: Moving, case: Break) -> None:
    await until_broken(moved, case)
    source, target = await moved.states()
    if source is not None and source.life is Life.RUNNING:
        source = dataclasses.replace(source, reason=case.source.reason)  # the reason may be left from an earlier case
    assert (source, target) == (case.source, case.target), case
    assert moved.qemus() == (1, int(target is not None)), case
    if source == MIGRATES:
        await (await guest_at(moved.at_source)).resume()
    await counts_on(moved)


async def until_broken(moved: Moving, case: Break) -> None:
    """Break the migration, and wait for libvirt's final state."""
    let_pass(moved)
    tolls = moved.calls
    if case.is_client:
        for toll in tolls.values():
            toll.also = [item for item in tolls.values() if item is not toll]
    if case.at is not None:
        at = Passing(*case.at[1:])
        tolls[case.at[0]].rule = lambda passing: "cut" if passing == at else ""
        with pytest.raises(HypervisorError):
            await moved.send()
    else:
        moved.valve.is_full.clear()
        moved.valve.is_open.clear()
        work = asyncio.create_task(moved.send())
        async with asyncio.timeout(SECONDS):
            await moved.valve.is_full.wait()
        await break_off(moved, case.name)
        with pytest.raises(HypervisorError):
            await work
    await moved.until_target(case.target)
    await moved.until_source(case.source.life)


def let_pass(moved: Moving) -> None:
    for relay in moved.calls.values():
        relay.rule = lambda _passing: ""
        relay.also = []
    moved.valve.is_open.set()


async def break_off(moved: Moving, what: str) -> None:
    """Break a migration that has sent part of the memory."""
    if what == "given up":
        guest = await guest_at(moved.at_source)
        progress = await guest.progress()
        assert progress.total > progress.remaining > 0
        await guest.abort_job()
    elif what == "memory":
        moved.valve.cut()
    elif what == "QEMU of the target":
        for pid in moved.target.pids("qemu-system-x86_64"):
            os.kill(pid, signal.SIGKILL)
    else:
        moved.calls["target"].cut()
        for toll in moved.calls["target"].also:
            toll.cut()


async def guest_at(connection: Connection) -> Guest:
    guest = await connection.guest(UID)
    assert guest is not None
    return guest


@pytest.mark.parametrize("is_client", [False, True], ids=["its connection breaks", "the client ends"])
async def test_a_source_without_the_confirmation_stays_paused_though_the_call_succeeded(
    moved: Moving, is_client: bool
) -> None:
    """libvirt's call does not tell: whether the source's QEMU is gone has to be checked."""
    moved.calls["source"].rule = lambda passing: "cut" if passing == Passing("confirm", False) else ""
    if is_client:
        moved.calls["source"].also = [moved.calls["target"]]
    await moved.send()

    await moved.until_source(Life.PAUSED)
    assert await moved.states() == (MIGRATES, WHOLE)
    assert moved.qemus() == (1, 1)
    await (await guest_at(moved.at_source)).resume()
    await counts_on(moved)
    assert moved.target.console == "", "it has never run there"


async def test_source_exit_notices_that_a_guest_has_left(moved: Moving) -> None:
    """It uses libvirt's state at the target and the processes at the source."""

    class Node:
        async def find_traces(self, _unused: str) -> Traces:
            return Traces(True, 1, moved.qemus()[0])

    source_exit = SourceExit(Node(), "source-pod", UID, moved.at_target)
    watch = asyncio.create_task(source_exit.watch())
    await moved.send()
    async with asyncio.timeout(SECONDS):
        await watch
    assert source_exit.there is not None
    assert moved.qemus() == (0, 1)
    assert await moved.states() == (MIGRATED, WHOLE)


async def test_a_confirmed_source_is_gone_even_if_its_answer_is_lost(moved: Moving) -> None:
    moved.calls["source"].rule = lambda passing: "cut after" if passing == Passing("confirm", False) else ""
    await moved.send()
    await moved.until_source(Life.SHUT_OFF)
    assert await moved.states() == (MIGRATED, WHOLE)
    assert moved.qemus() == (0, 1)
