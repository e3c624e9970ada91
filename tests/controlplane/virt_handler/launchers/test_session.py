# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session runs one operation at a time in its own task, and records its failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, NoReturn, get_args

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.operations import Operations
from controlplane.virt_handler.launchers.session import Session, operation_name
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import Busy, NoContact, OperationInputs, StartRefused, VerbRefused
from controlplane.virt_handler.vmi.world import (
    Destroy,
    FailedOperation,
    Operation,
    PlugCpus,
    PlugMemory,
    PrepareNetwork,
    Resume,
    ShutDown,
    StartDomain,
)
from tests.controlplane.virt_handler.builders import POD_UID, VMI_UID, a_pod
from tests.controlplane.virt_handler.fakes import FakeClock
from tests.controlplane.virt_handler.launchers.session_stage import nowhere

START, DESTROY = StartDomain(POD_UID, "test"), Destroy(POD_UID, "test")


async def _cannot_connect(_path: str) -> NoReturn:
    raise ConnectionRefusedError


class Contact:
    """Operations and user requests that end on command, with an optional error."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def perform(self, action: Operation, _inputs: OperationInputs) -> None:
        await self._do(operation_name(action))

    async def execute(self, verb: Verb, _vmi: VirtualMachineInstance | None, *, thaw_after: int) -> None:
        await self._do(verb)

    async def _do(self, name: str) -> None:
        self.asked.append(name)
        await self.may_end.wait()
        if self.error is not None:
            raise self.error


class Stage:
    def __init__(self) -> None:
        self.contact, self.clock = Contact(), FakeClock()
        self.tasks: list[asyncio.Task[None]] = []
        self.enqueued: list[str] = []
        self.session = Session(
            a_pod(),
            VMI_UID,
            Tools(NodeClient(nowhere), self.clock, _cannot_connect),
            lambda: self.enqueued.append(self.operation),
            spawn=self._spawn,
        )
        contact: Any = self.contact
        self.session.operations = self.session.user_requests = contact

    @property
    def operation(self) -> str:
        return self.session.launcher().operation

    @property
    def failed_operation(self) -> FailedOperation | None:
        return self.session.launcher().failed_operation

    async def end(self, error: Exception | None = None) -> None:
        self.contact.error = error
        self.contact.may_end.set()
        await self.tasks[-1]
        self.contact.may_end.clear()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))


@pytest.fixture
async def stage() -> Stage:
    return Stage()


def test_every_action_of_a_session_has_its_operation() -> None:
    dispatcher = vars(Operations)["perform"].dispatcher
    assert set(get_args(Operation)) == set(dispatcher.registry) - {object}


async def test_an_operation_starts_at_once_and_its_end_enqueues_the_vmi(stage: Stage) -> None:
    stage.session.perform(START)
    assert stage.operation == "start domain"
    assert stage.enqueued == []
    await stage.end()
    assert stage.enqueued == [""]
    assert stage.failed_operation is None


async def test_only_one_operation_runs_at_a_time(stage: Stage) -> None:
    stage.session.perform(START)
    plugs = (PlugCpus(POD_UID, 2, "test"), PlugMemory(POD_UID, 2 << 20, "test"))
    for action in (DESTROY, ShutDown(POD_UID, "test"), Resume(POD_UID, "test"), *plugs):
        with pytest.raises(NoContact, match=r"busy with another operation \(start domain\)"):
            stage.session.perform(action)
    await stage.end()
    assert stage.contact.asked == ["start domain"]


@pytest.mark.parametrize(
    ("error", "is_refusal"), [(StartRefused("no memory"), True), (NoContact("it hangs"), False), (KeyError("x"), False)]
)
async def test_failed_operations_are_counted(
    stage: Stage, error: Exception, is_refusal: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        for count in (1, 2):
            stage.session.perform(START)
            await stage.end(error)
            assert stage.failed_operation == FailedOperation(str(error), is_refusal=is_refusal, at=1000.0, count=count)
    stage.session.perform(PrepareNetwork(POD_UID, "test"))
    await stage.end()
    assert stage.failed_operation is None


async def test_a_cancelled_operation_frees_the_launcher(stage: Stage) -> None:
    stage.session.perform(DESTROY)
    await asyncio.sleep(0)
    stage.tasks[-1].cancel()
    await asyncio.wait(stage.tasks)
    assert stage.operation == ""


async def test_a_user_request_is_awaited_and_never_a_failed_operation(stage: Stage) -> None:
    asking = asyncio.create_task(stage.session.execute_user_request("pause", None))
    await asyncio.sleep(0)
    assert stage.operation == "pause"
    await stage.end()
    await asking
    assert (stage.contact.asked, stage.operation, stage.failed_operation, stage.enqueued) == (["pause"], "", None, [""])


@pytest.mark.parametrize("error", [VerbRefused("no"), NoContact("broke")], ids=["refused", "broke"])
async def test_the_caller_gets_the_error_of_a_user_request(stage: Stage, error: Exception) -> None:
    asking = asyncio.create_task(stage.session.execute_user_request("reset", None))
    await asyncio.sleep(0)
    await stage.end(error)
    with pytest.raises(type(error), match=str(error)):
        await asking
    assert (stage.operation, stage.failed_operation) == ("", None)


async def test_a_user_request_runs_alone(stage: Stage) -> None:
    stage.session.perform(DESTROY)
    with pytest.raises(Busy, match="busy with another operation"):
        await stage.session.execute_user_request("pause", None)
    transfer: Any = stage.session.transfer
    with pytest.raises(NoContact, match="cannot begin a migration: the launcher is busy"):
        transfer(None, None, None)
    await stage.end()
    asking = asyncio.create_task(stage.session.execute_user_request("pause", None))
    await asyncio.sleep(0)
    with pytest.raises(NoContact):
        stage.session.perform(Resume(POD_UID, "test"))
    await stage.end()
    await asking


@pytest.mark.parametrize("error", [None, NoContact("broke")], ids=["done", "broke"])
async def test_a_user_request_continues_without_its_caller(
    stage: Stage, error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    asking = asyncio.create_task(stage.session.execute_user_request("reset", None))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stage.operation == "reset"
    await stage.end(error)
    assert (stage.operation, caplog.records) == ("", [])


async def test_a_bug_in_a_user_request_is_answered_and_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    asking = asyncio.create_task(stage.session.execute_user_request("reset", None))
    await asyncio.sleep(0)
    await stage.end(ZeroDivisionError())
    with pytest.raises(NoContact, match="ZeroDivisionError"):
        await asking
    assert "bug in a user request" in caplog.text
