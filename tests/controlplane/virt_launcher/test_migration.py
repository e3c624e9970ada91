# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest goes from one launcher to another, or stays where it is: what libvirt and QEMU make of every way to break it.

What docs/adr/0016 rests on: while the source's QEMU exists, the target's guest has never run.
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
"""At the target, whatever the source knows of it."""
SECONDS = 60.0


@pytest_asyncio.fixture(loop_scope="session")
async def moved(images: Images, tmp_path: pathlib.Path) -> AsyncIterator[Moving]:
    async with moving(images, tmp_path) as made:
        yield made


def last_count(console: str) -> int:
    return max(map(int, re.findall(r"virtops-guest: counter ([0-9]+)", console)), default=0)


async def counts_on(moved: Moving) -> None:
    """The source's guest lives, and the target's never has."""
    before = last_count(moved.source.console)
    await until(lambda: last_count(moved.source.console) > before, "guest that counts on", moved.source)
    assert moved.target.console == ""


async def test_a_guest_goes_on_where_it_was_with_its_memory_and_its_disks_and_gets_another_cpu(moved: Moving) -> None:
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
    found = re.findall(r"counter ([0-9]+)", moved.target.console)
    assert int(found[0]) in (last_count(moved.source.console), last_count(moved.source.console) + 1)
    console = len(moved.target.console)
    for disk in (root, data):
        await until(lambda disk=disk: disk in moved.target.console[console:], f"what was {disk}", moved.target)

    assert (await there.described(read_domain)).vcpus == 1
    await there.set_vcpus(2)
    assert (await there.described(read_domain)).vcpus == 2
    await until(lambda: "with 2 CPUs" in moved.target.console[console:], "guest with two CPUs", moved.target)


@dataclasses.dataclass(frozen=True)
class Break:
    """How a migration is broken, at a message or when some of the memory has been sent, and what comes of it."""

    name: str
    at: tuple[str, str, bool] | None = None
    """Whose libvirtd; the step, and whether it is its answer that is lost."""
    is_client: bool = False
    """The client ends: both its connections are cut, and not one."""
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
"""There is a whole guest at the target then, with which its launcher ends."""


async def test_one_that_breaks_before_the_target_has_all_stays(moved: Moving) -> None:
    """In each way there is, one after another, and then it moves."""
    for case in BREAKS:
        await stays(moved, case)
    let_pass(moved)
    await (await moved.send()).resume()
    await until(lambda: last_count(moved.target.console), "guest that goes on", moved.target)


@pytest.mark.parametrize("case", LATE_BREAKS, ids=lambda case: case.name)
async def test_one_that_breaks_before_the_source_hears_that_the_target_has_all_stays(
    moved: Moving, case: Break
) -> None:
    await stays(moved, case)
    await (await guest_at(moved.at_target)).destroy()
    await counts_on(moved)


async def stays(moved: Moving, case: Break) -> None:
    await until_broken(moved, case)
    source, target = await moved.states()
    if source is not None and source.life is Life.RUNNING:
        source = dataclasses.replace(source, reason=case.source.reason)  # of an earlier one
    assert (source, target) == (case.source, case.target), case
    assert moved.qemus() == (1, int(target is not None)), case
    if source == MIGRATES:
        await (await guest_at(moved.at_source)).resume()
    await counts_on(moved)


async def until_broken(moved: Moving, case: Break) -> None:
    """Break it, and wait until libvirt has made of it what it will."""
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
    for toll in moved.calls.values():
        toll.rule = lambda _passing: ""
        toll.also = []
    moved.valve.is_open.set()


async def break_off(moved: Moving, what: str) -> None:
    """Break one of which some memory has been sent."""
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
    found = await connection.guest(UID)
    assert found is not None
    return found


@pytest.mark.parametrize("is_client", [False, True], ids=["its connection breaks", "the client ends"])
async def test_a_source_that_does_not_hear_that_the_target_has_all_waits_though_the_call_is_done(
    moved: Moving, is_client: bool
) -> None:
    """libvirt's call says nothing of it: whether the source's QEMU is gone has to be asked."""
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


async def test_one_that_has_left_is_seen_to_have(moved: Moving) -> None:
    """By what libvirt says at the target, and by the processes of its source."""

    class Node:
        async def find_traces(self, _unused: str) -> Traces:
            return Traces(True, 1, moved.qemus()[0])

    departure = SourceExit(Node(), "source-pod", UID, moved.at_target)
    watch = asyncio.create_task(departure.watch())
    await moved.send()
    async with asyncio.timeout(SECONDS):
        await watch
    assert departure.there is not None
    assert moved.qemus() == (0, 1)
    assert await moved.states() == (MIGRATED, WHOLE)


async def test_a_source_that_has_heard_it_is_gone_whether_it_can_say_so_or_not(moved: Moving) -> None:
    moved.calls["source"].rule = lambda passing: "cut after" if passing == Passing("confirm", False) else ""
    await moved.send()
    await moved.until_source(Life.SHUT_OFF)
    assert await moved.states() == (MIGRATED, WHOLE)
    assert moved.qemus() == (0, 1)
