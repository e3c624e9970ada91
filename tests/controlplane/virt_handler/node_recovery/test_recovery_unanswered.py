# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What delays the recovery of a node and what does not: unanswered questions, and many launchers."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Forbidden
from controlplane.engine.ports import Json
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.world import Traces
from tests.controlplane.virt_handler.builders import vmi_object
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS, until
from tests.controlplane.virt_handler.node_recovery.recovery_stage import (
    YET_TO_SAY,
    FakeGuest,
    Server,
    Stage,
    a_guest,
    own,
)

MANY = 40


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def server(stage: Stage) -> Server:
    return Server(stage)


async def test_only_unanswered_questions_are_repeated(stage: Stage, server: Server) -> None:
    gone, mine, mute = (a_guest(stage, name) for name in ("gone", "mine", "mute"))
    own(stage, "mine")
    server.mute = {"mute"}
    await stage.play(0.01)
    assert (gone.ends, mine.ends, mute.ends) == (1, 0, 0)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY

    server.mute = set()
    await stage.play(3)
    assert (gone.ends, mine.ends, mute.ends, stage.recovery.start_blocked_reason) == (1, 0, 1, "")
    assert sorted(server.asked) == ["gone", "mine", "mute", "mute"]


async def test_an_unanswered_question_blocks_starts_until_the_deadline_only(stage: Stage, server: Server) -> None:
    mute = a_guest(stage, "mute")
    for number in range(MANY):
        a_guest(stage, f"vm-{number}")
        own(stage, f"vm-{number}")
    server.mute = {"mute"}
    await stage.play(DEADLINE_SECONDS - 1)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY
    await stage.play(2)
    assert (stage.recovery.start_blocked_reason, len(stage.cleared), stage.recovery.unanswered) == ("", 1, 1)
    assert stage.cleared[0] == 1000.0 + DEADLINE_SECONDS

    await stage.play(3600)
    assert (mute.ends, stage.recovery.start_blocked_reason, len(stage.cleared)) == (0, "", 1)
    assert len(server.asked) < MANY + 80, "the others once, this one ever less often"
    ((vmi, event),) = stage.events
    assert vmi["metadata"] == {"name": "mute", "namespace": "default", "uid": "mute-uid"}
    assert (event.reason, event.is_warning) == ("OwnerUnknown", True)
    assert event.message == (
        "the API server did not respond within 60 s whether this guest still belongs to its node: "
        "it continues to run, other guests start on this node again, and virt-handler repeats the request"
    )


async def test_an_orphan_found_late_is_ended_late(stage: Stage, server: Server) -> None:
    """The orphan blocks starts again, until its own deadline."""
    late = a_guest(stage, "late")
    late.is_deaf = True
    server.mute = {"late"}
    await stage.play(DEADLINE_SECONDS + 100)
    assert (late.ends, stage.recovery.start_blocked_reason) == (0, "")
    server.mute = set()
    await stage.play(66)
    assert late.ends > 0
    assert stage.recovery.start_blocked_reason == "1 guests that do not belong to this node any more are being ended"
    assert stage.recovery.unanswered == 0
    await stage.play(DEADLINE_SECONDS)
    assert stage.recovery.start_blocked_reason == ""
    assert [event.reason for _unused, event in stage.events] == ["OwnerUnknown", "OrphanLeft"]


async def test_an_orphan_found_in_time_has_the_rest_of_the_deadline(stage: Stage, server: Server) -> None:
    late = a_guest(stage, "late")
    late.is_deaf = True
    server.mute = {"late"}
    await stage.play(DEADLINE_SECONDS / 2)
    server.mute = set()
    await stage.play(DEADLINE_SECONDS / 2 - 1)
    assert stage.recovery.orphans == 1
    assert stage.recovery.start_blocked_reason
    await stage.play(2)
    assert stage.recovery.start_blocked_reason == ""


async def test_a_server_that_only_renews_the_lease_blocks_starts_until_the_deadline(stage: Stage) -> None:
    """For example without the RBAC role. The API server itself is reachable."""
    guest = stage.add(FakeGuest(stage.clock))
    stage.api.error = Forbidden("no")
    await stage.play(DEADLINE_SECONDS - 1)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY
    await stage.play(2)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (0, "")


async def test_repeated_silences_do_not_extend_the_deadline_of_an_unanswered_question(
    stage: Stage, server: Server
) -> None:
    for name in ("mute", "mine"):
        a_guest(stage, name)
    own(stage, "mine")
    server.mute = {"mute"}
    await stage.play(DEADLINE_SECONDS + 1)
    for _unused in range(4):
        await stage.play(LEASE_SECONDS + 10, is_cut_off=True)
        await stage.play(1)
        assert stage.recovery.start_blocked_reason == ""
    assert [event.reason for _unused, event in stage.events] == ["OwnerUnknown"]


async def test_after_a_silence_the_deadline_starts_again(stage: Stage, server: Server) -> None:
    """The host was suspended for an hour meanwhile."""
    for name in ("mute", "mine"):
        a_guest(stage, name)
    own(stage, "mine")
    server.mute = {"mute"}
    await stage.play(5)
    stage.heard.is_cut_off = True
    stage.clock.seconds += 3600
    await stage.play(DEADLINE_SECONDS - 1)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY
    await stage.play(2)
    assert stage.recovery.start_blocked_reason == ""


async def test_the_deadline_starts_with_the_first_answer_after_an_outage(stage: Stage, server: Server) -> None:
    for name in ("mute", "mine"):
        a_guest(stage, name)
    own(stage, "mine")
    server.mute = {"mute", "mine"}
    await stage.play(3600, is_cut_off=True)
    server.mute = {"mute"}
    await stage.play(9, is_cut_off=True)
    assert stage.recovery.start_blocked_reason == YET_TO_SAY


async def test_a_server_that_answers_nothing_gets_few_questions_at_a_time(stage: Stage, server: Server) -> None:
    """The next round starts with the questions that were left out."""
    names = {f"vm-{number}" for number in range(MANY)}
    for name in names:
        a_guest(stage, name)
    server.mute = set(names)
    await stage.play(0.01, is_cut_off=True)
    assert len(server.asked) < MANY
    await stage.play(60, is_cut_off=True)
    assert set(server.asked) == names
    assert stage.recovery.start_blocked_reason == YET_TO_SAY


async def test_connected_guests_end_before_finished_launchers_are_asked_about(stage: Stage, server: Server) -> None:
    """Launchers of finished VMIs stay listed: they are orphans that are down."""
    for number in range(MANY):
        over = a_guest(stage, f"over-{number}")
        over.is_up = False
        over.see(is_connected=False, state=None)
        own(stage, f"over-{number}", "Succeeded")
    gone = a_guest(stage, "gone")
    ends_at_asks: list[int] = []
    ends_at_looks: set[int] = set()
    original_get, original_find_traces = stage.api.get, stage.find_traces

    async def get(resource: Any, key: Key) -> Json:
        ends_at_asks.append(gone.ends)
        return await original_get(resource, key)

    stage.api.get = get  # type: ignore[method-assign]

    async def find_traces(pod_uid: str) -> Traces:
        ends_at_looks.add(gone.ends)
        return await original_find_traces(pod_uid)

    stage.find_traces = find_traces  # type: ignore[method-assign]
    await stage.play(5)
    assert server.asked[0] == "gone"
    assert ends_at_asks == [0] + [1] * MANY
    assert ends_at_looks == {1}, "no look comes before its end"
    assert (stage.recovery.start_blocked_reason, stage.recovery.orphans) == ("", 0)
    assert len(server.asked) == MANY + 1


async def test_a_hung_event_does_not_delay_the_recovery(stage: Stage, server: Server) -> None:
    """The storage of Events may be down while the node recovers with an orphan."""
    a_guest(stage, "left").is_deaf = True
    gone = a_guest(stage, "gone")
    own(stage, "gone")

    async def tell(_about: Json, event: VmiEvent) -> None:
        stage.events.append(({}, event))
        await until(lambda: gone.ends == 1, "the end of the other")

    stage.recovery._record_event = tell  # type: ignore[method-assign]
    await stage.play(DEADLINE_SECONDS + 1)
    assert ([event.reason for _unused, event in stage.events], gone.ends) == (["OrphanLeft"], 0)

    stage.api.objects.clear()
    stage.heard.is_cut_off = True
    stage.clock.seconds += LEASE_SECONDS
    await stage.play(20)
    assert gone.ends == 1


async def test_a_removed_launcher_is_not_asked_about_any_more(stage: Stage, server: Server) -> None:
    for name in ("mute", "mine"):
        a_guest(stage, name)
    own(stage, "mine")
    server.mute = {"mute"}
    await stage.play(5)
    del stage.guests["mute-pod"]
    before = len(server.asked)
    await stage.play(20)
    assert (server.asked[before:], stage.recovery.unanswered, stage.recovery.start_blocked_reason) == ([], 0, "")


async def test_an_answer_from_before_a_silence_does_not_count(stage: Stage) -> None:
    """The answer waited in the socket while the host was suspended, and another node got the run meanwhile."""
    guest = a_guest(stage, "web")
    own(stage, "web")
    original, times = stage.api.get, []

    async def get(resource: Any, key: Key) -> Json:
        answer = await original(resource, key)
        times.append(stage.clock.seconds)
        if len(times) == 1:
            stage.clock.seconds += 3600
            stage.api.objects.clear()
            stage.heard.beat()
        return answer

    stage.api.get = get  # type: ignore[method-assign]
    stage.clock.seconds += LEASE_SECONDS  # this answer is the only proof that the API server is reachable
    await stage.play(5, is_cut_off=True)
    await stage.play(5)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_an_undecodable_spec_hides_no_orphan(stage: Stage, phase: str) -> None:
    guest = a_guest(stage, "web")
    body = vmi_object(phase)
    body["metadata"] |= {"name": "web", "uid": "web-uid" if phase == "Succeeded" else "another"}
    body["spec"] = {"domain": "nonsense"}
    stage.api.store(body)
    await stage.play(5)
    assert (guest.ends, stage.recovery.start_blocked_reason) == (1, "")
