# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power requests: which launcher executes them, and what virt-handler answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError, Forbidden
from controlplane.links.handler import Answer, Done, Guest, NotDone, Power, Verb
from controlplane.virt_handler.api_endpoint.power import PowerRequests
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.ports import Busy, NoContact, VerbRefused
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.virt_handler.builders import (
    NODE,
    OTHER,
    POD_UID,
    VMI_UID,
    a_launcher,
    a_pod,
    observed,
    seen,
    vmi_object,
)
from tests.controlplane.virt_handler.fakes import FakeCache, FakeClock


class Stage:
    """A node with one launcher, which executes user requests or refuses them."""

    def __init__(self) -> None:
        self.known = a_launcher(seen())
        self.asked: list[tuple[Verb, VirtualMachineInstance | None]] = []
        self.error: Exception | None = None
        self.thaw_after = 0
        self.vmis = FakeCache()
        self.clock = FakeClock()
        self.events: list[tuple[str, VmiEvent]] = []
        self.events_error: ApiError | None = None
        self.verbs = PowerRequests(NODE, self, self.vmis, self.clock, self._record_event)

    async def _record_event(self, about: dict[str, Any], event: VmiEvent) -> None:
        self.events.append((about["metadata"]["uid"], event))
        if self.events_error is not None:
            raise self.events_error

    def session(self, pod_uid: str) -> Stage | None:
        return self if pod_uid == POD_UID else None

    def launcher(self) -> Launcher:
        return self.known

    async def execute_user_request(self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int) -> None:
        self.asked.append((verb, vmi))
        self.thaw_after = thaw_after
        if self.error is not None:
            raise self.error

    async def ask(
        self, verb: Verb = "reset", *, node: str = NODE, vmi_uid: str = VMI_UID, pod_uid: str = POD_UID
    ) -> Answer:
        return await self.verbs.answer(Power(Guest(node, vmi_uid, pod_uid), verb, 60))

    def say(self, reason: str = "", *, phase: str = "Running", uid: str = VMI_UID) -> None:
        """Put a VMI into the cache. Its Paused condition has this reason."""
        body = vmi_object(phase)
        body["metadata"]["uid"] = uid
        body["status"]["conditions"] = [{"type": "Paused", "status": "True", "reason": reason}] if reason else []
        self.vmis.put(body)


async def test_the_launcher_gets_the_request_and_its_cached_vmi() -> None:
    stage = Stage()
    assert await stage.ask() == Done()
    stage.vmis.put(vmi_object("Running"))
    assert await stage.ask() == Done()

    assert [verb for verb, _vmi in stage.asked] == ["reset", "reset"]
    assert stage.thaw_after == 60
    assert [None if vmi is None else vmi.metadata.uid for _verb, vmi in stage.asked] == [None, VMI_UID]


@pytest.mark.parametrize("wrong", [{"node": OTHER}, {"vmi_uid": "another"}, {"pod_uid": "another"}], ids=str)
async def test_a_request_for_another_node_vmi_or_pod_is_answered_absent(wrong: dict[str, str]) -> None:
    stage = Stage()
    answer = await stage.ask(**wrong)
    assert isinstance(answer, NotDone)
    assert (answer.kind, stage.asked) == ("absent", [])


@pytest.mark.parametrize(
    "launcher",
    [
        a_launcher(seen(), a_pod(owner_uid="another")),
        a_launcher(seen(observed=observed(uid="another"))),
        a_launcher(seen(observed=observed(pod_uid="another"))),
    ],
    ids=["its Pod is another's", "its domain is another's", "its domain is another Pod's"],
)
async def test_a_launcher_or_domain_of_another_vmi_gets_no_request(launcher: Launcher) -> None:
    stage = Stage()
    stage.known = launcher
    assert isinstance(await stage.ask(), NotDone)
    assert stage.asked == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (VerbRefused("VMI is not running"), "refused"),
        (Busy("another verb"), "busy"),
        (NoContact("broke"), "lost"),
        (NoContact("broke" * 9000), "lost"),
    ],
)
async def test_an_error_is_answered_with_its_kind_and_a_bounded_text(error: Exception, kind: str) -> None:
    stage = Stage()
    stage.error = error
    answer = await stage.ask()
    assert isinstance(answer, NotDone)
    assert answer.kind == kind
    assert str(error).startswith(answer.text)
    assert len(answer.text) <= 1024
    assert all(vmi is None for _verb, vmi in stage.asked)


async def test_an_undecodable_or_replaced_vmi_is_not_passed_on() -> None:
    stage = Stage()
    broken, other = vmi_object("Running"), vmi_object("Running")
    broken["spec"] = 7
    other["metadata"]["uid"] = "another"
    for body in (broken, other):
        stage.vmis.put(body)
        assert await stage.ask() == Done()
    assert [vmi for _verb, vmi in stage.asked] == [None, None]


async def test_each_user_request_has_its_own_event() -> None:
    stage = Stage()
    stage.vmis.put(vmi_object("Running"))
    for _unused in range(2):
        assert await stage.ask() == Done()
        stage.clock.seconds += 1
        await asyncio.sleep(0)

    assert [(uid, event.reason) for uid, event in stage.events] == [(VMI_UID, "Reset")] * 2
    assert len({event.once for _unused, event in stage.events}) == 2


async def test_a_refused_event_does_not_fail_the_request() -> None:
    stage = Stage()
    stage.vmis.put(vmi_object("Running"))
    stage.events_error = Forbidden("no Events")
    assert await stage.ask() == Done()
    await asyncio.sleep(0)
    assert len(stage.events) == 1


async def test_many_pauses_create_a_bounded_number_of_events() -> None:
    stage = Stage()
    stage.vmis.put(vmi_object("Running"))
    for _unused in range(200):
        assert await stage.ask() == Done()
        await asyncio.sleep(0)
    assert len(stage.events) == 60


async def test_a_pause_is_answered_when_the_vmi_has_the_condition() -> None:
    """The next owner of the guest learns from the condition alone that a user paused it."""
    stage = Stage()
    stage.say()
    request = asyncio.create_task(stage.ask("pause"))
    for reason in ("", "PausedIOError", "PausedByMigrationMonitor"):
        stage.say(reason)
        await asyncio.sleep(0)
        assert not request.done()
    stage.say("PausedByUser")
    assert await asyncio.wait_for(request, 2) == Done()
    assert await stage.ask("pause") == Done(), "at once where it says so already"


NEVER: dict[str, dict[str, str]] = {"it is over": {"phase": "Failed"}, "it is another by now": {"uid": "another"}}


@pytest.mark.parametrize("said", NEVER.values(), ids=NEVER)
async def test_a_pause_of_a_finished_or_replaced_vmi_is_answered_as_lost(said: dict[str, str]) -> None:
    stage = Stage()
    stage.say()
    request = asyncio.create_task(stage.ask("pause"))
    await asyncio.sleep(0)
    stage.say("PausedByUser", **said)
    answer = await asyncio.wait_for(request, 2)
    assert isinstance(answer, NotDone)
    assert answer.kind == "lost"


async def test_a_pause_waits_while_the_vmi_is_undecodable() -> None:
    stage = Stage()
    body = vmi_object("Running")
    stage.vmis.put({**body, "status": {**body["status"], "conditions": 7}})
    request = asyncio.create_task(stage.ask("pause"))
    await asyncio.sleep(0)
    assert not request.done()
    stage.say("PausedByUser")
    assert await asyncio.wait_for(request, 2) == Done()


async def test_an_unpause_ends_the_wait_of_a_pause() -> None:
    stage = Stage()
    stage.say()
    request = asyncio.create_task(stage.ask("pause"))
    await asyncio.sleep(0)
    assert await stage.ask("unpause") == Done()
    assert isinstance(await asyncio.wait_for(request, 2), NotDone)
