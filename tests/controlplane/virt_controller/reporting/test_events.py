# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events beside the real work."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import Forbidden
from controlplane.virt_controller.reporting.events import (
    CACHE_LIMIT,
    QUEUE_LIMIT,
    REPEAT_SECONDS,
    VARIANTS,
    EventRecorder,
    Regarding,
)
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.stories.stage import Stage, Users, a_vm

WEB = Regarding(VIRTUAL_MACHINE, Key("default", "web"), "u1")
OTHER = Regarding(VIRTUAL_MACHINE, Key("default", "db"), "u2")


class Recording:
    """An API that takes Events, or refuses the first ones."""

    def __init__(self, refuse: int = 0) -> None:
        self.created: list[dict[str, Any]] = []
        self._refuse = refuse

    async def create(self, resource: Any, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self._refuse > 0:
            self._refuse -= 1
            raise Forbidden("namespace is being deleted")
        self.created.append(body)
        return body


async def sent(writer: EventRecorder, turns: int = 20) -> None:
    """Run the writer until it has nothing left."""
    task = asyncio.ensure_future(writer.run())
    for _unused in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def a_writer(api: Any, clock: SimulatedClock) -> EventRecorder:
    return EventRecorder(api, clock, component="virt-controller", instance="pod-1")


async def test_an_event_names_the_object_and_is_said_once_in_ten_minutes() -> None:
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for seconds in (0.0, 1.0, REPEAT_SECONDS):
        clock.advance(seconds)
        writer.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    await sent(writer)
    assert [one["reason"] for one in api.created] == ["FailedCreate"] * 2
    assert api.created[0]["involvedObject"]["uid"] == "u1"
    assert api.created[0]["type"] == "Warning"
    assert len({one["metadata"]["name"] for one in api.created}) == 2


async def test_three_starts_in_a_minute_are_three_events() -> None:
    """Review 1, B9: the same sentence about the same machine was one Event in ten minutes."""
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for run in ("run-1", "run-2", "run-3"):
        writer.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence=run)
        writer.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence=run)
    await sent(writer)
    assert len(api.created) == 3
    assert len({one["metadata"]["name"] for one in api.created}) == 3, "no two share a name, at one moment"


def test_starts_and_stops_are_told_apart_by_the_instance_they_made_or_ended() -> None:
    with Stage() as stage:
        users, runs = Users(stage), []
        users.create(a_vm())
        for _unused in range(2):
            runs.append(stage.store.get(VIRTUAL_MACHINE_INSTANCE, WEB.key)["metadata"]["uid"])
            users.switch("Halted")
            users.switch("Always")
    runs.append(stage.store.get(VIRTUAL_MACHINE_INSTANCE, WEB.key)["metadata"]["uid"])

    told = stage.controller.told.occurrences
    assert len(set(runs)) == 3
    assert [run for reason, run in told if reason == "SuccessfulCreate"] == runs
    ended = [one for reason, one in told if reason == "SuccessfulDelete"]
    assert [one for one in ended if one in runs] == runs[:2]
    assert len(set(ended)) == len(ended) == 4, "the instances, and the Pod of each"


async def test_one_failure_that_is_met_again_and_again_is_said_once_in_ten_minutes() -> None:
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for pod, seconds in (("pod-1", 0.0), ("pod-1", 30.0), ("pod-2", 30.0), ("pod-2", 30.0), ("pod-1", REPEAT_SECONDS)):
        clock.advance(seconds)
        writer.record(WEB, "Warning", "FailedCreate", "exceeded quota", occurrence=pod)
    await sent(writer)
    assert len(api.created) == 3


async def test_refusals_whose_words_keep_changing_make_no_storm() -> None:
    """An object that is refused 20 times in ten minutes, each time with another count in the server's words."""
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for number in range(20):
        writer.record(WEB, "Warning", "FailedCreate", f"exceeded quota, used {number}")
        clock.advance(30)
    writer.record(WEB, "Warning", "FailedDelete", "another reason")
    writer.record(OTHER, "Warning", "FailedCreate", "another object")
    await sent(writer, turns=50)
    assert Counter(one["reason"] for one in api.created) == {"FailedCreate": VARIANTS + 1, "FailedDelete": 1}
    clock.advance(REPEAT_SECONDS)
    writer.record(WEB, "Warning", "FailedCreate", "exceeded quota, used 99")
    await sent(writer)
    assert api.created[-1]["message"] == "exceeded quota, used 99"


async def test_objects_of_one_name_are_told_of_each() -> None:
    """In two namespaces, and one that was made after the other was deleted."""
    api = Recording()
    writer = a_writer(api, SimulatedClock())
    for namespace, uid in (("default", "u1"), ("other", "u2"), ("default", "u3")):
        about = Regarding(VIRTUAL_MACHINE, Key(namespace, "web"), uid)
        writer.record(about, "Warning", "FailedCreate", "exceeded quota")
    await sent(writer)
    assert [one["involvedObject"]["uid"] for one in api.created] == ["u1", "u2", "u3"]


async def test_however_many_things_happen_to_an_object_each_is_told() -> None:
    """Only a state that lasts is told in so many ways: a machine that is started again and again is."""
    api = Recording()
    writer = a_writer(api, SimulatedClock())
    for run in range(2 * VARIANTS):
        writer.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence=f"run-{run}")
    await sent(writer, turns=50)
    assert len(api.created) == 2 * VARIANTS


async def test_a_refused_event_holds_up_nothing() -> None:
    api = Recording(refuse=1)
    writer = a_writer(api, SimulatedClock())
    for reason in ("First", "Second"):
        writer.record(WEB, "Normal", reason, "x")
    await sent(writer)
    assert [one["reason"] for one in api.created] == ["Second"]


async def test_what_was_told_is_remembered_of_so_many_and_no_more() -> None:
    """A namespace in which machines come and go by the thousand costs no more than others."""
    api = Recording()
    writer = a_writer(api, SimulatedClock())
    writer.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    for number in range(CACHE_LIMIT):
        writer.record(Regarding(VIRTUAL_MACHINE, Key("default", f"vm-{number}"), f"u-{number}"), "Warning", "Made", "x")
    writer.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    await sent(writer, turns=QUEUE_LIMIT + 20)
    assert api.created[-1]["involvedObject"]["uid"] == WEB.uid, "what was forgotten is told again"


async def test_what_waits_is_bounded() -> None:
    api = Recording()
    writer = a_writer(api, SimulatedClock())
    for number in range(QUEUE_LIMIT + 5):
        writer.record(WEB, "Normal", f"Reason{number}", str(number))
    await sent(writer, turns=QUEUE_LIMIT + 20)
    assert len(api.created) == QUEUE_LIMIT
    assert api.created[0]["message"] == "5", "the oldest were dropped"


def of(namespace: str, number: int) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE, Key(namespace, f"vmi-{number}"), f"{namespace}-{number}")


async def test_a_namespace_of_which_much_is_told_drops_nobody_elses_events() -> None:
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    writer.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence="run-1")
    for number in range(QUEUE_LIMIT + 10):
        writer.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    await sent(writer, turns=2 * QUEUE_LIMIT)
    told = [one["involvedObject"]["name"] for one in api.created]
    assert "web" in told
    assert len(told) == QUEUE_LIMIT
    assert "vmi-0" not in told, "of whom most is untold, the oldest gives way"


async def test_nobody_waits_until_all_of_another_namespace_is_told() -> None:
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for number in range(100):
        writer.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    writer.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence="run-1")
    writer.record(WEB, "Normal", "SuccessfulDelete", "Stopped the virtual machine", occurrence="run-1")
    await sent(writer, turns=300)
    first = [one["involvedObject"]["name"] for one in api.created[:4]]
    assert first == ["vmi-0", "web", "vmi-1", "web"]
    assert [one["reason"] for one in api.created if one["involvedObject"]["name"] == "web"] == [
        "SuccessfulCreate",
        "SuccessfulDelete",
    ]


async def test_what_thousands_are_refused_is_told_of_each_once_in_ten_minutes() -> None:
    """A set of ten thousand that a quota refuses tries every half a minute: that is no Event every half a minute."""
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for _unused in range(3):
        for number in range(10_000):
            writer.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
            if number % QUEUE_LIMIT == QUEUE_LIMIT - 1:
                await sent(writer, turns=QUEUE_LIMIT + 10)
        clock.advance(30)
    assert len(api.created) == 10_000


async def test_what_was_told_long_ago_is_forgotten() -> None:
    api, clock = Recording(), SimulatedClock()
    writer = a_writer(api, clock)
    for number in range(100):
        writer.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    clock.advance(REPEAT_SECONDS)
    writer.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    assert (writer.cached, len(api.created)) == (1, 0)
