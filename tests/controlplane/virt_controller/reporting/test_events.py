# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the reconcilers."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import Forbidden
from controlplane.virt_controller.reporting import events
from controlplane.virt_controller.reporting.events import (
    QUEUE_LIMIT,
    REPEAT_SECONDS,
    VARIANTS,
    EventRecorder,
    Regarding,
)
from tests.controlplane.simulation.controller import RecordedEvents
from tests.controlplane.stories.stage import Stage, Users, a_vm
from tests.support.clock import SimulatedClock
from tests.support.tasks import cancel_task

WEB = Regarding(VIRTUAL_MACHINE, Key("default", "web"), "u1")
OTHER = Regarding(VIRTUAL_MACHINE, Key("default", "db"), "u2")


BEFORE, RUNNING, FAILED = "Scheduling", "Running", "Failed"


@pytest.mark.parametrize(
    ("kind", "reason", "phase", "expected"),
    [
        ("PodScheduled", "Unschedulable", BEFORE, "Normal"),
        ("Synchronized", "FailedMount", BEFORE, "Normal"),
        ("Synchronized", "ErrImagePull", BEFORE, "Normal"),
        ("Synchronized", "FailedPvcNotFound", "Pending", "Normal"),
        ("Synchronized", "VirtHandlerSilent", "Scheduled", "Normal"),
        ("Synchronized", "VirtHandlerSilent", FAILED, "Warning"),
        ("Synchronized", "InvalidSpec", "Pending", "Warning"),
        ("Synchronized", "LauncherFailed", FAILED, "Warning"),
        ("Synchronized", "RunTimedOut", FAILED, "Warning"),
        ("Synchronized", "StartFailed", "Scheduled", "Warning"),
        ("Synchronized", "LauncherLost", RUNNING, "Warning"),
        ("Synchronized", "FailedCreate", BEFORE, None),
        ("Synchronized", "FurtherAttempt", BEFORE, None),
        ("LiveMigratable", "DisksNotLiveMigratable", RUNNING, None),
    ],
)
def test_a_warning_is_a_failure_and_a_wait_is_none(kind: str, reason: str, phase: str, expected: str | None) -> None:
    """Clients that watch an instance give up at a Warning."""
    recorder, condition = RecordedEvents(), Condition(type=kind, status="False", reason=reason, message="why")
    events.record_blocking_conditions(recorder, WEB, (), (condition,), phase=phase)
    assert recorder.events == ([] if expected is None else [("default/web", reason, "why")])
    assert recorder.kinds == ([] if expected is None else [expected])


class Recording:
    """An API that accepts Events, or refuses the first ones."""

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


async def sent(recorder: EventRecorder, turns: int = 20) -> None:
    """Run the recorder until its queue is empty."""
    task = asyncio.ensure_future(recorder.run())
    for _unused in range(turns):
        await asyncio.sleep(0)
    await cancel_task(task)


def a_recorder(api: Any, clock: SimulatedClock) -> EventRecorder:
    return EventRecorder(api, clock, component="virt-controller", instance="pod-1")


async def test_an_event_names_the_object_and_is_not_repeated_within_ten_minutes() -> None:
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    for seconds in (0.0, 1.0, REPEAT_SECONDS):
        clock.advance(seconds)
        recorder.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    await sent(recorder)
    assert [event["reason"] for event in api.created] == ["FailedCreate"] * 2
    assert api.created[0]["involvedObject"]["uid"] == "u1"
    assert api.created[0]["type"] == "Warning"
    assert len({event["metadata"]["name"] for event in api.created}) == 2


async def test_each_occurrence_is_one_event_and_their_number_is_not_limited() -> None:
    """Same object, same message. The limit of variants is for lasting states."""
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    runs = [f"run-{number}" for number in range(2 * VARIANTS)]
    for run in runs:
        recorder.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence=run)
        recorder.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence=run)
    await sent(recorder, turns=50)
    assert len(api.created) == len(runs)
    assert len({event["metadata"]["name"] for event in api.created}) == len(runs), (
        "Events of the same moment have different names"
    )


def test_the_occurrence_of_a_start_or_stop_is_the_uid_of_the_vmi() -> None:
    with Stage() as stage:
        users, runs = Users(stage), []
        users.create(a_vm())
        for _unused in range(2):
            runs.append(stage.store.get(VIRTUAL_MACHINE_INSTANCE, WEB.key)["metadata"]["uid"])
            users.switch("Halted")
            users.switch("Always")
    runs.append(stage.store.get(VIRTUAL_MACHINE_INSTANCE, WEB.key)["metadata"]["uid"])

    occurrences = stage.controller.recorded.occurrences
    assert len(set(runs)) == 3
    assert [run for reason, run in occurrences if reason == "SuccessfulCreate"] == runs
    deleted = [uid for reason, uid in occurrences if reason == "SuccessfulDelete"]
    assert [uid for uid in deleted if uid in runs] == runs[:2]
    assert len(set(deleted)) == len(deleted) == 4, "the VMIs, and the Pod of each"


async def test_a_refusal_with_changing_numbers_is_limited() -> None:
    """An object is refused 20 times in ten minutes, each time with another number in the message."""
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    for number in range(20):
        recorder.record(WEB, "Warning", "FailedCreate", f"exceeded quota, used {number}")
        clock.advance(30)
    recorder.record(WEB, "Warning", "FailedDelete", "another reason")
    recorder.record(OTHER, "Warning", "FailedCreate", "another object")
    await sent(recorder, turns=50)
    assert Counter(event["reason"] for event in api.created) == {"FailedCreate": VARIANTS + 1, "FailedDelete": 1}
    clock.advance(REPEAT_SECONDS)
    recorder.record(WEB, "Warning", "FailedCreate", "exceeded quota, used 99")
    await sent(recorder)
    assert api.created[-1]["message"] == "exceeded quota, used 99"


async def test_objects_with_the_same_name_have_their_own_events() -> None:
    """In two namespaces, and one created after the other was deleted."""
    api = Recording()
    recorder = a_recorder(api, SimulatedClock())
    for namespace, uid in (("default", "u1"), ("other", "u2"), ("default", "u3")):
        about = Regarding(VIRTUAL_MACHINE, Key(namespace, "web"), uid)
        recorder.record(about, "Warning", "FailedCreate", "exceeded quota")
    await sent(recorder)
    assert [event["involvedObject"]["uid"] for event in api.created] == ["u1", "u2", "u3"]


async def test_a_refused_event_is_dropped() -> None:
    api = Recording(refuse=1)
    recorder = a_recorder(api, SimulatedClock())
    for reason in ("First", "Second"):
        recorder.record(WEB, "Normal", reason, "x")
    await sent(recorder)
    assert [event["reason"] for event in api.created] == ["Second"]


async def test_the_cache_of_recent_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace with thousands of short-lived VMs costs no more memory than others."""
    monkeypatch.setattr(events, "CACHE_LIMIT", 100)
    api = Recording()
    recorder = a_recorder(api, SimulatedClock())
    recorder.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    for number in range(100):
        recorder.record(
            Regarding(VIRTUAL_MACHINE, Key("default", f"vm-{number}"), f"u-{number}"), "Warning", "Made", "x"
        )
    recorder.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    await sent(recorder, turns=QUEUE_LIMIT + 20)
    assert api.created[-1]["involvedObject"]["uid"] == WEB.uid, "evicted from the cache, so recorded again"


async def test_the_queue_is_bounded() -> None:
    api = Recording()
    recorder = a_recorder(api, SimulatedClock())
    for number in range(QUEUE_LIMIT + 5):
        recorder.record(WEB, "Normal", f"Reason{number}", str(number))
    await sent(recorder, turns=QUEUE_LIMIT + 20)
    assert len(api.created) == QUEUE_LIMIT
    assert api.created[0]["message"] == "5", "the oldest are dropped"


def of(namespace: str, number: int) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE, Key(namespace, f"vmi-{number}"), f"{namespace}-{number}")


async def test_a_full_queue_drops_events_of_the_busiest_namespace() -> None:
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    recorder.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence="run-1")
    for number in range(QUEUE_LIMIT + 10):
        recorder.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    await sent(recorder, turns=2 * QUEUE_LIMIT)
    names = [event["involvedObject"]["name"] for event in api.created]
    assert "web" in names
    assert len(names) == QUEUE_LIMIT
    assert "vmi-0" not in names, "the oldest of the busiest namespace"


async def test_namespaces_take_turns() -> None:
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    for number in range(100):
        recorder.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    recorder.record(WEB, "Normal", "SuccessfulCreate", "Started the virtual machine", occurrence="run-1")
    recorder.record(WEB, "Normal", "SuccessfulDelete", "Stopped the virtual machine", occurrence="run-1")
    await sent(recorder, turns=300)
    first = [event["involvedObject"]["name"] for event in api.created[:4]]
    assert first == ["vmi-0", "web", "vmi-1", "web"]
    assert [event["reason"] for event in api.created if event["involvedObject"]["name"] == "web"] == [
        "SuccessfulCreate",
        "SuccessfulDelete",
    ]


async def test_events_expire_from_the_cache() -> None:
    api, clock = Recording(), SimulatedClock()
    recorder = a_recorder(api, clock)
    for number in range(100):
        recorder.record(of("crowd", number), "Warning", "FailedCreate", "exceeded quota")
    clock.advance(REPEAT_SECONDS)
    recorder.record(WEB, "Warning", "FailedCreate", "exceeded quota")
    assert (recorder.cached, len(api.created)) == (1, 0)
