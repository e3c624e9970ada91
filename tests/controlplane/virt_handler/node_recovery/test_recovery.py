# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node comes back, who is asked what, and for how long it starts nothing. What makes an orphan: test_orphans."""

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


async def test_before_anybody_has_asked_nothing_may_start(stage: Stage) -> None:
    assert stage.clearing.held == "the API server is yet to say which guests on this node are still its own"


async def test_a_node_without_launchers_is_clear_at_once_and_nobody_is_asked(stage: Stage) -> None:
    await stage.play(0.01)
    assert stage.clearing.held == ""
    assert stage.cleared == [1000.0]
    assert stage.api.gets == []


async def test_a_node_without_launchers_is_clear_though_nobody_hears_from_it(stage: Stage) -> None:
    """Its Lease may not get through while all else does: there is nothing to ask that would say so."""
    stage.clock.seconds += LEASE_SECONDS
    await stage.play(1, is_cut_off=True)
    assert stage.clearing.held == ""


async def test_a_guest_that_is_still_its_nodes_own_is_let_run(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(600)
    assert (guest.ends, stage.clearing.held, stage.cleared) == (0, "", [1000.0])
    assert len(stage.api.gets) == 1


async def test_an_orphan_is_ended_and_the_node_held_until_it_is_down(stage: Stage) -> None:
    """Its VMI has run elsewhere since."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    moved = vmi_object("Running", node=OTHER)
    moved["metadata"]["uid"] = "cccc0000"
    stage.api.store(moved)
    await stage.play(5)
    assert guest.ends == 1
    assert stage.clearing.held == "1 guests on this node that are not its own any more are being ended"
    assert stage.clearing.orphans == 1

    guest.is_up = False
    guest.see(state=OFF)
    await stage.play(1.5)
    assert (stage.clearing.held, stage.clearing.orphans) == ("", 0)
    assert len(stage.cleared) == 1
    assert stage.told == []


async def test_an_orphan_that_this_process_has_not_dialled_is_dialled_and_ended(stage: Stage) -> None:
    """virt-handler was begun anew while its node was cut off: no VMI grants the Pod the run any more."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.see(is_admitted=False, is_connected=False, state=None)
    await stage.play(5)
    assert (guest.ends, stage.clearing.held) == (1, "")


async def test_an_orphan_that_does_not_end_does_not_hold_the_node_for_ever(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    await stage.play(DEADLINE_SECONDS - 1)
    assert stage.clearing.held
    await stage.play(2)
    assert stage.clearing.held == ""
    assert len(stage.cleared) == 1
    ((about, told),) = stage.told
    assert about["metadata"] == {"name": "web", "namespace": "default", "uid": VMI_UID}
    assert (told.reason, told.is_warning) == ("OrphanLeft", True)
    assert told.message == (
        f"the API server knows no VMI of UID {VMI_UID}, and its guest is not known to have ended in 60 s: "
        "machines start beside it"
    )

    ends = guest.ends
    await stage.play(30)
    assert guest.ends > ends, "it is told on to end"
    assert len(stage.told) == 1
    guest.is_deaf = False
    await stage.play(30)
    assert stage.clearing.orphans == 0


async def test_neither_do_silences_one_after_the_other(stage: Stage) -> None:
    """It is found again by each of them; and said to be left once."""
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True
    for _unused in range(4):
        await stage.play(LEASE_SECONDS + 10, is_cut_off=True)
        await stage.play(1)
    assert stage.clearing.held == ""
    assert [told.reason for _unused, told in stage.told] == ["OrphanLeft"]


@pytest.mark.parametrize("error", [Unavailable("cut off"), Forbidden("no")], ids=["not reached", "not allowed"])
async def test_where_nobody_answers_nothing_is_ended_and_nothing_starts(stage: Stage, error: Exception) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.error = error
    await stage.play(3600, is_cut_off=True)
    assert guest.ends == 0
    assert stage.clearing.held
    assert max(stage.rests) == 8.0
    stage.api.error = None
    await stage.play(10)
    assert (guest.ends, stage.clearing.held) == (1, "")


async def test_a_vmi_that_cannot_be_read_makes_no_orphan(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store({**vmi_object("Running"), "metadata": {"name": "web", "namespace": "default", "uid": 7}})
    await stage.play(100)
    assert (guest.ends, stage.clearing.held) == (0, "")


async def test_a_silence_as_long_as_the_lease_has_all_asked_again(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(100)
    assert stage.clearing.held == ""

    stage.api.error = Unavailable("cut off")
    await stage.play(LEASE_SECONDS - 1, is_cut_off=True)
    assert stage.clearing.held == ""
    await stage.play(2, is_cut_off=True)
    assert stage.clearing.held, "before the Lease is renewed, too: a watch may be quicker"

    stage.api.objects.clear()
    stage.api.error = None
    await stage.play(3)
    assert (guest.ends, stage.clearing.held) == (1, "")


async def test_a_silence_that_nobody_saw_is_one(stage: Stage) -> None:
    """The host was suspended, and the Lease is the first that is renewed."""
    stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(1)
    stage.heard.is_cut_off = True
    stage.clock.seconds += 3600
    stage.heard.beat()
    assert stage.clearing.held
    await stage.play(1)
    assert stage.clearing.held == ""
    assert len(stage.api.gets) == 2


async def test_a_lease_that_never_gets_through_does_not_hold_the_node_for_ever(stage: Stage) -> None:
    """The API server answers all else: what it says is as good as being heard, for as long as the Lease lasts."""
    stage.add(FakeGuest(stage.clock))
    stage.api.store(vmi_object("Running"))
    await stage.play(400, is_cut_off=True)
    assert len(stage.api.gets) in (10, 11)
    assert len(stage.cleared) == len(stage.api.gets)


async def test_an_orphan_of_which_nobody_can_say_that_it_is_down_counts_as_running(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.see(state=OFF)
    guest.is_up = stage.can_look = False
    await stage.play(30)
    assert stage.clearing.held
    stage.can_look = True
    await stage.play(2)
    assert stage.clearing.held == ""


async def test_a_launcher_that_is_busy_is_told_later(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_busy = True
    await stage.play(3)
    guest.is_busy = False
    await stage.play(3)
    assert (guest.ends, stage.clearing.held) == (1, "")


async def test_a_story_that_cannot_be_told_stops_nothing(stage: Stage) -> None:
    guest = stage.add(FakeGuest(stage.clock))
    guest.is_deaf = True

    async def tell(*_unused: Any) -> None:
        raise Forbidden("no")

    stage.clearing._tell = tell  # type: ignore[method-assign]
    await stage.play(DEADLINE_SECONDS + 30)
    assert stage.clearing.held == ""
