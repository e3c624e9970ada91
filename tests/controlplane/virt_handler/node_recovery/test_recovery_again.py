# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that recovers more than once: which earlier answers still count."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Json
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS
from tests.controlplane.virt_handler.builders import RUNNING
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS
from tests.controlplane.virt_handler.node_recovery.recovery_stage import YET_TO_SAY, Server, Stage, a_guest, own


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def server(stage: Stage) -> Server:
    return Server(stage)


async def come_back(stage: Stage, seconds: float) -> None:
    """Be silent for longer than the Lease lasts. Then run for some seconds."""
    stage.heard.is_cut_off = True
    stage.clock.seconds += LEASE_SECONDS + 1
    await stage.play(seconds)


async def test_an_answer_is_as_old_as_its_question(stage: Stage) -> None:
    """The node has no Lease: it repeats a question one Lease after asking it, however late the answer was."""
    a_guest(stage, "web")
    own(stage, "web")
    original, times = stage.api.get, []

    async def get(resource: Any, key: Key) -> Json:
        times.append(stage.clock.seconds)
        if len(times) == 1:
            stage.clock.seconds += LEASE_SECONDS - 10
        return await original(resource, key)

    stage.api.get = get  # type: ignore[method-assign]
    stage.clock.seconds += LEASE_SECONDS
    await stage.play(LEASE_SECONDS + 15, is_cut_off=True)
    assert times[1] - times[0] == pytest.approx(LEASE_SECONDS, abs=1)


async def test_a_vmi_answered_before_and_unanswered_now_blocks_starts_again(stage: Stage, server: Server) -> None:
    for name in ("web", "mine"):
        a_guest(stage, name)
        own(stage, name)
    server.mute = {"web"}
    await stage.play(DEADLINE_SECONDS + 1)
    assert stage.recovery.start_blocked_reason == ""
    server.mute = set()
    await stage.play(100)
    assert stage.recovery.unanswered == 0

    server.mute = {"web"}
    await come_back(stage, 5)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY
    await stage.play(DEADLINE_SECONDS)
    assert [event.reason for _unused, event in stage.events] == ["OwnerUnknown"] * 2


async def test_an_orphan_that_runs_again_blocks_starts_again(stage: Stage) -> None:
    guest = a_guest(stage, "gone")
    await stage.play(5)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")

    guest.is_up, guest.is_deaf = True, True
    guest.see(state=RUNNING)
    stage.clock.seconds += DEADLINE_SECONDS
    await come_back(stage, 5)
    assert stage.recovery.start_blocked_reason == "1 guests that do not belong to this node any more are being ended"


async def test_a_new_heartbeat_repeats_the_questions_at_once(stage: Stage, server: Server) -> None:
    a_guest(stage, "web")
    server.mute = {"web"}
    await stage.play(25)
    before = len(server.asked)
    await stage.play(0.01)
    assert len(server.asked) == before, "it waits longer and longer"
    stage.recovery.wake()
    await stage.play(0.01)
    assert len(server.asked) == before + 1


async def test_connected_launchers_are_asked_about_first_in_the_next_recovery(stage: Stage, server: Server) -> None:
    """Only connected launchers can be ended."""
    a_guest(stage, "away").see(is_connected=False)
    a_guest(stage, "web")
    own(stage, "away")
    own(stage, "web")
    server.mute = {"web"}
    await stage.play(5)
    server.mute = set()
    await stage.play(10)
    server.asked.clear()
    await come_back(stage, 1)
    assert server.asked == ["web", "away"]


async def test_unanswered_questions_do_not_delay_the_answered_ones(stage: Stage, server: Server) -> None:
    """Only an API server that answers nothing is spared further questions."""
    a_guest(stage, "mine")
    own(stage, "mine")
    server.mute = {f"mute-{number}" for number in range(40)}
    for name in sorted(server.mute):
        a_guest(stage, name)
    gone = a_guest(stage, "gone")
    await stage.play(0.01)
    assert gone.ends == 1
