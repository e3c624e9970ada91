# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that comes back: its orphans end before it starts anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life
from controlplane.engine.errors import Unavailable
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS
from controlplane.virt_handler.node_recovery.recovery import LONGEST_ASK_SECONDS
from tests.controlplane.virt_handler.builders import NODE, OFF, OTHER, POD_UID, pod_object, vmi_object
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS, FakeLibvirtd, LauncherFiles, until
from tests.controlplane.virt_handler.stage import KEY, POD, Node

pytestmark = pytest.mark.root  # sockets of uid 107

QEMU = 4711
NEXT = Key("default", "next")
NEXT_UID, NEXT_POD = "0000dddd-1111-2222-3333-444444444444", "dddd0000-1111-2222-3333-444444444444"


class Next:
    """A VMI that is handed to the node while an orphan is on it."""

    def __init__(self, node: Node, *, key: Key = NEXT) -> None:
        self._node, self._key = node, key
        self.libvirtd = node.others[NEXT_POD] = FakeLibvirtd(NEXT_UID)
        self.files = LauncherFiles(node.files.run.parents[3], NEXT_POD)
        self.files.make_directory()
        self.files.report()
        self.files.listen()

    def hand_over(self) -> None:
        pod = pod_object(NEXT_POD, owner_uid=NEXT_UID)
        pod["metadata"]["ownerReferences"][0]["name"] = self._key.name
        vmi = vmi_object()
        vmi["metadata"] |= {"name": self._key.name, "uid": NEXT_UID}
        vmi["status"]["activePods"] = {NEXT_POD: NODE}
        self._node.api.store(vmi)
        self._node.pods.put(pod)

    @property
    def is_started(self) -> bool:
        guest = self.libvirtd.guest
        return guest is not None and guest.starts > 0

    async def is_ready(self) -> None:
        """Wait until only the start is missing."""
        await until(
            lambda: bool([connection for connection in self.libvirtd.connections if connection.is_open]), "contact"
        )
        await until(lambda: len(self._node.network.wanted) == 2, "its network")
        await asyncio.sleep(0.05)


@pytest.fixture
def orphaned(running: Node) -> Node:
    """Return a node whose guest ignores destroy."""
    running.proc.add(QEMU, f"0::/kubepods/besteffort/pod{POD_UID}/abc\n", comm="qemu-system-x86")
    guest = running.libvirtd.guest
    assert guest is not None

    async def destroy() -> None:
        running.libvirtd.asked.append("destroy")

    guest.destroy = guest.kill = destroy  # type: ignore[method-assign]
    return running


@pytest.fixture
def following(orphaned: Node) -> Iterator[Next]:
    vmi = Next(orphaned)
    yield vmi
    vmi.files.close()


@pytest.fixture
def successor(orphaned: Node) -> Iterator[Next]:
    """The next VMI of the same name."""
    vmi = Next(orphaned, key=KEY)
    yield vmi
    vmi.files.close()


def cut_off(node: Node, seconds: float) -> None:
    node.heard.is_cut_off = True
    node.api.error = Unavailable("cut off")
    node.clock.seconds += seconds


def heal(node: Node) -> None:
    """Let the API server answer. The Lease is not renewed yet: the watches may be faster."""
    node.api.error = None


def move_away(node: Node) -> None:
    """Let the next VMI of this name run elsewhere: a user marked the node out of service."""
    moved: dict[str, Any] = vmi_object("Running", node=OTHER)
    moved["metadata"]["uid"] = "0000eeee"
    moved["status"]["activePods"] = {"eeee0000": OTHER}
    node.api.is_lagging = True
    node.api.store(moved)
    node.api.is_lagging = False
    node.vmis.remove(KEY)


def end_guest(node: Node) -> None:
    node.proc.end(QEMU)
    assert node.libvirtd.guest is not None
    node.libvirtd.guest.become(OFF, "stopped")


async def test_after_a_silence_the_orphan_ends_before_the_next_guest_starts(orphaned: Node, following: Next) -> None:
    cut_off(orphaned, LEASE_SECONDS + 1)
    move_away(orphaned)
    heal(orphaned)
    following.hand_over()
    await following.is_ready()
    await until(lambda: orphaned.libvirtd.asked == ["destroy"], "the orphan is told to end")
    assert not following.is_started
    assert orphaned.clearing is not None
    assert orphaned.clearing.held

    end_guest(orphaned)
    await until(lambda: following.is_started, "the next machine")
    assert orphaned.clearing.held == ""


async def test_a_restarted_handler_ends_the_orphan_of_a_listed_pod(orphaned: Node, following: Next) -> None:
    """No VMI grants its Pod the run, so no VMI makes virt-handler dial it."""
    await orphaned.end()
    move_away(orphaned)
    dials = orphaned.libvirtd.dials
    orphaned.begin()
    following.hand_over()
    await following.is_ready()
    await until(lambda: orphaned.libvirtd.asked == ["destroy"], "the orphan is told to end")
    assert orphaned.libvirtd.dials == dials + 1
    assert not following.is_started
    end_guest(orphaned)
    await until(lambda: following.is_started, "the next machine")


async def test_the_old_run_ends_before_the_next_vmi_of_the_same_name_starts(orphaned: Node, successor: Next) -> None:
    cut_off(orphaned, LEASE_SECONDS + 1)
    heal(orphaned)
    orphaned.pods.remove(POD)
    successor.hand_over()
    await successor.is_ready()
    await until(lambda: orphaned.libvirtd.asked == ["destroy"], "the orphan is told to end")
    assert not successor.is_started
    end_guest(orphaned)
    await until(lambda: successor.is_started, "the next instance")


async def test_a_hung_orphan_blocks_starts_until_the_deadline(orphaned: Node, following: Next) -> None:
    cut_off(orphaned, LEASE_SECONDS + 1)
    move_away(orphaned)
    heal(orphaned)
    following.hand_over()
    await following.is_ready()
    assert not following.is_started
    orphaned.clock.seconds += DEADLINE_SECONDS
    await until(lambda: following.is_started, "the next machine")
    assert [event.reason for event in orphaned.told if event.is_warning] == ["OrphanLeft"]


async def test_a_silence_shorter_than_the_lease_changes_nothing(orphaned: Node, following: Next) -> None:
    cut_off(orphaned, LEASE_SECONDS - 1)
    heal(orphaned)
    orphaned.heard.beat()
    following.hand_over()
    await until(lambda: following.is_started, "the next machine")
    assert orphaned.libvirtd.asked == []


async def test_a_guest_that_the_node_still_owns_survives_every_silence(orphaned: Node, following: Next) -> None:
    cut_off(orphaned, 3600)
    await asyncio.sleep(0.05)
    heal(orphaned)
    orphaned.clock.seconds += LONGEST_ASK_SECONDS
    following.hand_over()
    await until(lambda: following.is_started, "the next machine")
    assert orphaned.libvirtd.asked == []
    assert orphaned.libvirtd.guest is not None
    assert orphaned.libvirtd.guest.life.life is Life.RUNNING
