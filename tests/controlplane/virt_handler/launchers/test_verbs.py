# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.verbs import Verbs
from controlplane.virt_handler.vmi.ports import Busy, NoContact, StartRefused, VerbRefused
from controlplane.virt_handler.vmi.world import Expected, FailedOperation, Launcher
from tests.controlplane.virt_handler.builders import a_launcher, a_vmi
from tests.controlplane.virt_handler.fakes import FakeClock


class Contact:
    """A launcher whose verbs end when they are let, and as they are told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    def launcher(self) -> Launcher:
        return a_launcher()

    def expect(self, expected: Expected) -> None:
        self.asked.append("expect")

    async def prepare_network(self, _unused: object) -> None:
        await self._do("prepare")

    async def start(self, _unused: object) -> None:
        await self._do("start")

    async def shut_down(self) -> None:
        await self._do("shut down")

    async def destroy(self) -> None:
        await self._do("destroy")

    async def resume(self) -> None:
        await self._do("resume")

    async def plug_cpus(self, count: int) -> None:
        await self._do(f"plug {count}")

    async def plug_memory(self, requested_bytes: int) -> None:
        await self._do(f"plug {requested_bytes} bytes")

    async def obey(self, verb: Verb, _unused: object, *, thaw_after: int) -> None:
        await self._do(verb)

    async def _do(self, verb: str) -> None:
        self.asked.append(verb)
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


class Stage:
    def __init__(self) -> None:
        self.contact, self.clock = Contact(), FakeClock()
        self.tasks: list[asyncio.Task[None]] = []
        self.woken: list[str] = []
        self.seconds: list[float] = []
        self.verbs = Verbs(
            self.contact,
            self.clock,
            self._spawn,
            lambda: self.woken.append(self.operation),
            started=self.seconds.append,
        )

    @property
    def operation(self) -> str:
        return self.verbs.launcher().operation

    @property
    def failed_operation(self) -> FailedOperation | None:
        return self.verbs.launcher().failed_operation

    async def end(self, error: Exception | None = None) -> None:
        self.contact.error = error
        self.contact.may_end.set()
        await self.tasks[-1]
        self.contact.may_end.clear()

    def _spawn(self, verb: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(verb))


async def granted() -> VirtualMachineInstance:
    return a_vmi()


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_a_verb_begins_at_once_and_nobody_waits_for_it(stage: Stage) -> None:
    stage.verbs.start(granted)
    assert stage.operation == "start"
    assert stage.woken == []
    await stage.end()


async def test_its_end_wakes_the_key_when_it_may_be_asked_again(stage: Stage) -> None:
    stage.verbs.start(granted)
    await asyncio.sleep(0)
    stage.clock.seconds += 0.4
    await stage.end()
    assert stage.woken == [""]
    assert stage.failed_operation is None
    assert stage.seconds == [pytest.approx(0.4)]


async def test_there_is_one_verb_at_a_time(stage: Stage) -> None:
    stage.verbs.start(granted)
    plugs = (lambda: stage.verbs.plug_cpus(2), lambda: stage.verbs.plug_memory(2 << 20))
    for verb in (stage.verbs.destroy, stage.verbs.shut_down, stage.verbs.resume, *plugs):
        with pytest.raises(NoContact, match=r"busy with another verb \(start\)"):
            verb()
    await stage.end()
    assert stage.contact.asked == ["start"]


@pytest.mark.parametrize(
    ("error", "is_refusal"), [(StartRefused("no memory"), True), (NoContact("it hangs"), False), (KeyError("x"), False)]
)
async def test_what_came_to_nothing_is_counted_and_known(
    stage: Stage, error: Exception, is_refusal: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        for count in (1, 2):
            stage.verbs.start(granted)
            await stage.end(error)
            assert stage.failed_operation == FailedOperation(str(error), is_refusal=is_refusal, at=1000.0, count=count)
    assert stage.seconds == []
    stage.verbs.prepare_network(a_vmi())
    await stage.end()
    assert stage.failed_operation is None


async def test_a_verb_that_is_cancelled_leaves_the_launcher_free(stage: Stage) -> None:
    stage.verbs.destroy()
    await asyncio.sleep(0)
    stage.tasks[-1].cancel()
    await asyncio.wait(stage.tasks)
    assert stage.operation == ""


async def test_what_a_person_asks_is_waited_for_and_no_setback_of_ours() -> None:
    stage = Stage()
    asking = asyncio.create_task(stage.verbs.obey("pause", None))
    await asyncio.sleep(0)
    assert stage.operation == "pause"
    await stage.end()
    await asking
    assert (stage.contact.asked, stage.operation, stage.failed_operation, stage.woken) == (["pause"], "", None, [""])


@pytest.mark.parametrize("error", [VerbRefused("no"), NoContact("broke")], ids=["refused", "broke"])
async def test_what_came_of_what_a_person_asked_is_that_persons(error: Exception) -> None:
    stage = Stage()
    asking = asyncio.create_task(stage.verbs.obey("reset", None))
    await asyncio.sleep(0)
    await stage.end(error)
    with pytest.raises(type(error), match=str(error)):
        await asking
    assert (stage.operation, stage.failed_operation) == ("", None)


async def test_one_verb_at_a_time_also_for_a_person() -> None:
    stage = Stage()
    stage.verbs.destroy()
    with pytest.raises(Busy, match="busy with another verb"):
        await stage.verbs.obey("pause", None)
    await stage.end()
    asking = asyncio.create_task(stage.verbs.obey("pause", None))
    await asyncio.sleep(0)
    with pytest.raises(NoContact):
        stage.verbs.resume()
    await stage.end()
    await asking


@pytest.mark.parametrize("error", [None, NoContact("broke")], ids=["done", "broke"])
async def test_a_person_who_does_not_wait_does_not_end_the_verb(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    asking = asyncio.create_task(stage.verbs.obey("reset", None))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stage.operation == "reset"
    await stage.end(error)
    assert (stage.operation, caplog.records) == ("", [])


async def test_a_bug_in_what_a_person_asked_is_said_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    asking = asyncio.create_task(stage.verbs.obey("reset", None))
    await asyncio.sleep(0)
    await stage.end(ZeroDivisionError())
    with pytest.raises(NoContact, match="ZeroDivisionError"):
        await asking
    assert "bug in a verb" in caplog.text
