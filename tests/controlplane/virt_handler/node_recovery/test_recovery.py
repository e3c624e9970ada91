# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recovery of a node: its questions, and how long it blocks starts. What makes an orphan: test_orphans."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.engine.errors import Forbidden, Unavailable
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS
from tests.controlplane.virt_handler.builders import OFF, OTHER, VMI_UID, vmi_object
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS
from tests.controlplane.virt_handler.node_recovery.recovery_stage import FakeGuest, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_node_without_launchers_recovers_at_once_without_questions(stage: Stage) -> None:
    await stage.play(0.01)
    assert stage.recovery.start_blocked_reason == ""
    assert stage.cleared == [1000.0]
    assert stage.api.gets == []


async def test_a_node_without_launchers_recovers_without_a_lease(stage: Stage) -> None:
    """The Lease may fail while everything else works, and there is no question whose answer would prove that."""
    stage.clock.seconds += LEASE_SECONDS
    await stage.play(1, is_cut_off=True)
    assert stage.recovery.start_blocked_reason == ""


async def test_a_guest_that_the_node_still_owns_keeps_running(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(600)
    assert (guest.ends, stage.recovery.start_blocked_reason, stage.cleared) == (0, "", [1000.0])
    assert len(stage.api.gets) == 1


async def test_an_orphan_is_ended_and_blocks_starts_until_it_is_down(stage: Stage) -> None:
    """A new VMI of its name runs elsewhere."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    moved = vmi_object("Running", node=OTHER)
    moved["metadata"]["uid"] = "cccc0000"
    stage.api.store(moved)
    await stage.play(5)
    assert guest.ends == 1
    assert stage.recovery.start_blocked_reason == "1 guests that do not belong to this node any more are being ended"
    assert stage.recovery.orphans == 1

    guest.is_up = False
    guest.see(state=OFF)
    await stage.play(1.5)
    assert (stage.recovery.start_blocked_reason, stage.recovery.orphans) == ("", 0)
    assert len(stage.cleared) == 1
    assert stage.events == []


async def test_an_undialled_orphan_is_dialled_and_ended(stage: Stage) -> None:
    """virt-handler restarted while the node was cut off. No VMI grants the Pod the run."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.see(is_admitted=False, is_connected=False, state=None)
    await stage.play(5)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")


async def test_a_hung_orphan_blocks_starts_until_the_deadline_only(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    await stage.play(DEADLINE_SECONDS - 1)
    assert stage.recovery.start_blocked_reason
    await stage.play(2)
    assert stage.recovery.start_blocked_reason == ""
    assert len(stage.cleared) == 1
    ((vmi, event),) = stage.events
    assert vmi["metadata"] == {"name": "web", "namespace": "default", "uid": VMI_UID}
    assert (event.reason, event.is_warning) == ("OrphanLeft", True)
    assert event.message == (
        f"the API server has no VMI of UID {VMI_UID}, and nothing proves that its guest ended within 60 s: "
        "other guests start on this node again"
    )

    ends = guest.ends
    await stage.play(30)
    assert guest.ends > ends, "it is destroyed again"
    assert len(stage.events) == 1
    guest.is_deaf = False
    await stage.play(30)
    assert stage.recovery.orphans == 0


async def test_repeated_silences_do_not_extend_the_deadline(stage: Stage) -> None:
    """Each silence finds the orphan again, but only the first deadline has an Event."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    for _unused in range(4):
        await stage.play(LEASE_SECONDS + 10, is_cut_off=True)
        await stage.play(1)
    assert stage.recovery.start_blocked_reason == ""
    assert [event.reason for _unused, event in stage.events] == ["OrphanLeft"]


@pytest.mark.parametrize("error", [Unavailable("cut off"), Forbidden("no")], ids=["not reached", "not allowed"])
async def test_without_an_api_server_nothing_ends_and_nothing_starts(stage: Stage, error: Exception) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.error = error
    await stage.play(3600, is_cut_off=True)
    assert guest.ends == 0
    assert stage.recovery.start_blocked_reason
    assert max(stage.rests) == 8.0
    stage.api.error = None
    await stage.play(10)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")


async def test_an_undecodable_vmi_makes_no_orphan(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store({**vmi_object("Running"), "metadata": {"name": "web", "namespace": "default", "uid": 7}})
    await stage.play(100)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (0, "")


async def test_a_silence_as_long_as_the_lease_repeats_all_questions(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(100)
    assert stage.recovery.start_blocked_reason == ""

    stage.api.error = Unavailable("cut off")
    await stage.play(LEASE_SECONDS - 1, is_cut_off=True)
    assert stage.recovery.start_blocked_reason == ""
    await stage.play(2, is_cut_off=True)
    assert stage.recovery.start_blocked_reason, "before the Lease is renewed, too: a watch may be quicker"

    stage.api.objects.clear()
    stage.api.error = None
    await stage.play(3)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")


async def test_a_silence_during_a_suspension_counts(stage: Stage) -> None:
    """The host was suspended, and its first request renews the Lease."""
    stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(1)
    stage.heard.is_cut_off = True
    stage.clock.seconds += 3600
    stage.heard.beat()
    assert stage.recovery.start_blocked_reason
    await stage.play(1)
    assert stage.recovery.start_blocked_reason == ""
    assert len(stage.api.gets) == 2


async def test_a_failing_lease_does_not_block_starts_for_ever(stage: Stage) -> None:
    """The API server answers everything else. Each answer counts as a renewed Lease."""
    stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(400, is_cut_off=True)
    assert len(stage.api.gets) in (10, 11)
    assert len(stage.cleared) == len(stage.api.gets)


async def test_an_orphan_whose_end_cannot_be_verified_counts_as_running(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.see(state=OFF)
    guest.is_up = stage.can_look = False
    await stage.play(30)
    assert stage.recovery.start_blocked_reason
    stage.can_look = True
    await stage.play(2)
    assert stage.recovery.start_blocked_reason == ""


async def test_a_failed_event_does_not_stop_the_recovery(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True

    async def tell(*_unused: Any) -> None:
        raise Forbidden("no")

    stage.recovery._record_event = tell  # type: ignore[method-assign]
    await stage.play(DEADLINE_SECONDS + 30)
    assert stage.recovery.start_blocked_reason == ""
