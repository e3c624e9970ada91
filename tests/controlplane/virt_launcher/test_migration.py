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
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_handler.migration.source_exit import SourceExit
from controlplane.virt_handler.vmi.world import Traces
from tests.controlplane.virt_launcher.launched import UID, last_count, until
from tests.controlplane.virt_launcher.launcher_pod import Images
from tests.controlplane.virt_launcher.migration_pods import EPOCH, POD_UID, Migration, migration_pods
from tests.controlplane.virt_launcher.rpc_relay import Message

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

RUNS, GOES_ON = State(Life.RUNNING, "booted"), State(Life.RUNNING, "unpaused")
CANCELED = State(Life.RUNNING, "migration_canceled")
MIGRATES, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
WHOLE = State(Life.PAUSED, "user")
"""State at the target in all cases."""
SECONDS = 240.0


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def moved(
    images: Images, tmp_path_factory: pytest.TempPathFactory, libvirt_loop: None
) -> AsyncIterator[Migration]:
    """One guest for several tests, which leave it running at its source. The last of them migrates it."""
    async with migration_pods(images, tmp_path_factory.mktemp("migration")) as pods:
        yield pods


@pytest_asyncio.fixture(loop_scope="session")
async def fresh(images: Images, tmp_path: pathlib.Path) -> AsyncIterator[Migration]:
    """A guest of its own, for a test that leaves one at the target."""
    async with migration_pods(images, tmp_path) as pods:
        yield pods


async def counts_on(pods: Migration) -> None:
    """Check that the source's guest runs and the target's has never run."""
    before = last_count(pods.source.console)
    await until(lambda: last_count(pods.source.console) > before, "guest that counts on", pods.source)
    assert pods.target.console == ""


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
    Break("QEMU of the target"),
    Break("the client ends when all is sent", ("source", "perform", True), is_client=True, source=MIGRATES),
    Break("the target does not hear that it is all", ("target", "finish", False), source=CANCELED),
)
MORE_BREAKS = (
    Break("control"),
    Break("client", is_client=True),
    Break("the target is never asked to prepare", ("target", "prepare", False)),
    Break("its answer to that is lost", ("target", "prepare", True)),
    Break("the client ends at the finish call", ("target", "finish", False), is_client=True, source=MIGRATES),
)
LATE_BREAKS = (
    Break("the target has all, and cannot say so", ("target", "finish", True), source=CANCELED, target=WHOLE),
    Break("and the client ends at that", ("target", "finish", True), is_client=True, source=MIGRATES, target=WHOLE),
)
"""The target has a complete guest, which ends with its launcher."""


async def test_a_migration_broken_before_the_target_is_complete_stays_at_the_source(moved: Migration) -> None:
    for case in BREAKS:
        await stays(moved, case)


@pytest.mark.nightly
async def test_every_other_break_before_the_target_is_complete_leaves_the_guest_at_the_source(
    moved: Migration,
) -> None:
    for case in MORE_BREAKS:
        await stays(moved, case)


async def test_a_migrated_guest_keeps_memory_and_disks_and_can_plug_a_cpu(moved: Migration) -> None:
    """SourceExit sees the end of the guest at the source, in libvirt's state at the target and in the processes."""

    class Node:
        async def find_traces(self, _unused: str, *, wait_seconds: float) -> Traces:
            return Traces(True, 1, moved.qemus()[0])

    let_pass(moved)
    await until(lambda: "on sda: " in moved.source.console, "guest that has written", moved.source)
    (root,) = set(re.findall(r"on vda: [0-9a-f]{64}", moved.source.console))
    (data,) = set(re.findall(r"on sda: [0-9a-f]{64}", moved.source.console))
    source_exit = SourceExit(Node(), "source-pod", UID, moved.at_target)
    watch = asyncio.create_task(source_exit.watch())
    guest = await moved.send()
    async with asyncio.timeout(SECONDS):
        await watch
    assert source_exit.there is not None
    assert await moved.states() == (MIGRATED, WHOLE)
    assert moved.qemus() == (0, 1)
    assert moved.target.console == "", "it waits for resume"
    assert moved.source.process is not None
    assert moved.source.process.poll() is None, "virt-controller ends the source's launcher"

    identity = (await guest.described(read_domain)).identity
    assert identity is not None
    assert (identity.uid, identity.pod_uid, identity.epoch) == (UID, POD_UID, EPOCH)
    await guest.resume()
    assert await moved.states() == (MIGRATED, GOES_ON)

    await until(lambda: last_count(moved.target.console) > last_count(moved.source.console), "count", moved.target)
    counts = re.findall(r"counter ([0-9]+)", moved.target.console)
    assert int(counts[0]) in (last_count(moved.source.console), last_count(moved.source.console) + 1)
    console = len(moved.target.console)
    for disk in (root, data):
        await until(lambda disk=disk: disk in moved.target.console[console:], f"disk as it was: {disk}", moved.target)
    assert (await guest.described(read_domain)).vcpus == 1
    await guest.set_vcpus(2)
    assert (await guest.described(read_domain)).vcpus == 2
    await until(lambda: "with 2 CPUs" in moved.target.console[console:], "guest with two CPUs", moved.target)


@pytest.mark.nightly
@pytest.mark.parametrize("case", LATE_BREAKS, ids=lambda case: case.name)
async def test_a_migration_broken_before_the_source_hears_of_completion_stays_at_the_source(
    fresh: Migration, case: Break
) -> None:
    await stays(fresh, case)
    await (await guest_at(fresh.at_target)).destroy()
    await counts_on(fresh)


@pytest.mark.nightly
@pytest.mark.parametrize("is_client", [False, True], ids=["its connection breaks", "the client ends"])
async def test_a_source_without_the_confirmation_stays_paused_though_the_call_succeeded(
    fresh: Migration, is_client: bool
) -> None:
    """libvirt's call does not tell: whether the source's QEMU is gone has to be checked."""
    fresh.relays["source"].rule = lambda message: "cut" if message == Message("confirm", False) else ""
    if is_client:
        fresh.relays["source"].also = [fresh.relays["target"]]
    await fresh.send()

    await fresh.until_source(Life.PAUSED)
    assert await fresh.states() == (MIGRATES, WHOLE)
    assert fresh.qemus() == (1, 1)
    await (await guest_at(fresh.at_source)).resume()
    await counts_on(fresh)
    assert fresh.target.console == "", "it has never run there"


@pytest.mark.nightly
async def test_a_confirmed_source_is_gone_even_if_its_answer_is_lost(fresh: Migration) -> None:
    fresh.relays["source"].rule = lambda message: "cut after" if message == Message("confirm", False) else ""
    await fresh.send()
    await fresh.until_source(Life.SHUT_OFF)
    assert await fresh.states() == (MIGRATED, WHOLE)
    assert fresh.qemus() == (0, 1)


async def stays(pods: Migration, case: Break) -> None:
    await until_broken(pods, case)
    source, target = await pods.states()
    if source is not None and source.life is Life.RUNNING:
        source = dataclasses.replace(source, reason=case.source.reason)  # the reason may be left from an earlier case
    assert (source, target) == (case.source, case.target), case
    assert pods.qemus() == (1, int(target is not None)), case
    if source == MIGRATES:
        await (await guest_at(pods.at_source)).resume()
    await counts_on(pods)


async def until_broken(pods: Migration, case: Break) -> None:
    """Break the migration, and wait for libvirt's final state."""
    let_pass(pods)
    relays = pods.relays
    if case.is_client:
        for relay in relays.values():
            relay.also = [other for other in relays.values() if other is not relay]
    if case.at is not None:
        at = Message(*case.at[1:])
        relays[case.at[0]].rule = lambda message: "cut" if message == at else ""
        with pytest.raises(HypervisorError):
            await pods.send()
    else:
        pods.valve.is_full.clear()
        pods.valve.is_open.clear()
        work = asyncio.create_task(pods.send())
        async with asyncio.timeout(SECONDS):
            await pods.valve.is_full.wait()
        await break_off(pods, case.name)
        with pytest.raises(HypervisorError):
            await work
    await pods.until_target(case.target)
    await pods.until_source(case.source.life)


def let_pass(pods: Migration) -> None:
    for relay in pods.relays.values():
        relay.rule = lambda _message: ""
        relay.also = []
    pods.valve.is_open.set()


async def break_off(pods: Migration, what: str) -> None:
    """Break a migration that has sent part of the memory."""
    if what == "given up":
        guest = await guest_at(pods.at_source)
        progress = await guest.progress()
        assert progress.total > progress.remaining > 0
        await guest.abort_job()
    elif what == "memory":
        pods.valve.cut()
    elif what == "QEMU of the target":
        for pid in pods.target.pids("qemu-system-x86_64"):
            os.kill(pid, signal.SIGKILL)
    else:
        pods.relays["target"].cut()
        for relay in pods.relays["target"].also:
            relay.cut()


async def guest_at(connection: Connection) -> Domain:
    guest = await connection.guest(UID)
    assert guest is not None
    return guest
