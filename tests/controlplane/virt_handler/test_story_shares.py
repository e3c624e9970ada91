# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with more hung launchers than workers. Runner, reconciler and user requests are real; launchers are fakes."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, NoReturn

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.clock import SystemClock
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.session import Session, operation_name
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import OperationInputs
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi.world import Launcher, Operation, PrepareNetwork, StartDomain, Traces
from tests.controlplane.virt_handler.builders import NODE, RUNNING, a_pod, observed, seen, vmi_object
from tests.controlplane.virt_handler.fakes import FakeApi, FakeCache, until

WORKERS, HUNG = 4, 12


async def _nowhere() -> socket.socket:
    raise ConnectionRefusedError


async def _cannot_connect(_path: str) -> NoReturn:
    raise ConnectionRefusedError


class Contact:
    """Operations of a launcher that starts its guest, unless it hangs."""

    def __init__(self, uid: str, *, hangs: bool) -> None:
        self.uid, self.hangs = uid, hangs
        self.asked: list[str] = []
        self.record: LauncherRecord | None = None

    async def perform(self, action: Operation, inputs: OperationInputs) -> None:
        self.asked.append(operation_name(action))
        if isinstance(action, StartDomain) and inputs.authorize_start is not None:
            await inputs.authorize_start()
        if self.hangs and not isinstance(action, PrepareNetwork):
            await asyncio.Event().wait()
        if isinstance(action, StartDomain) and self.record is not None:
            self.record.replace(seen(RUNNING, observed=observed(uid=self.uid, pod_uid=f"pod-{self.uid}")))


class Node:
    """Implements vmi.ports.Sessions."""

    synced, node_trouble = True, None

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self.vmis = FakeCache()
        self.api = FakeApi(self.vmis)
        self.contacts: dict[str, Contact] = {}
        self._sessions: dict[str, Session] = {}
        self._clock = SystemClock()
        reconciler = VmiReconciler(NODE, self.vmis, self, self.api, self._clock, tell=self._tell, held=lambda: "")
        queue = WorkQueue(BackOff(random.Random(1).random))
        self.runner: Runner[Any, Any, Any] = Runner("vmi", reconciler, queue, self._clock, limit=WORKERS)
        self.vmis.subscribe(lambda key, before, after: self.runner.add(key))

    def hand_over(self, name: str, *, hangs: bool = False, deleting: bool = False, phase: str = "Scheduled") -> None:
        body = vmi_object(phase, deleting=deleting)
        body["metadata"] |= {"name": name, "uid": name}
        body["status"]["activePods"] = {f"pod-{name}": NODE}
        contact = self.contacts.setdefault(name, Contact(name, hangs=hangs))
        key = Key("default", name)
        if f"pod-{name}" not in self._sessions:
            self._sessions[f"pod-{name}"] = self._session(contact, key)
        self.api.store(body)

    def _session(self, contact: Contact, key: Key) -> Session:
        """Create a session with these operations."""
        pod = a_pod(f"pod-{contact.uid}", owner_uid=contact.uid)
        tools = Tools(NodeClient(_nowhere), self._clock, _cannot_connect)
        session = Session(pod, contact.uid, tools, lambda: self.runner.add(key), spawn=self._spawn)
        session.operations = contact  # type: ignore[assignment]
        session.record.status, contact.record = seen(None), session.record
        return session

    def phase(self, name: str) -> str:
        return str(self.api.objects[Key("default", name)]["status"]["phase"])

    def session(self, pod_uid: str) -> Session | None:
        return self._sessions.get(pod_uid)

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        return (self._sessions[f"pod-{vmi_uid}"].launcher(),)

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        return ()

    async def find_traces(self, pod_uid: str) -> Traces:
        raise NotImplementedError

    def _spawn(self, verb: Coroutine[Any, Any, None]) -> None:
        self._group.create_task(verb)

    async def _tell(self, *_unused: object) -> None:
        """Drop the Event."""


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    started: asyncio.Future[Node] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            node = Node(group)
            started.set_result(node)
            await node.runner.run()

    task = asyncio.create_task(run())
    yield await started
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_more_hung_starts_than_workers_block_no_other_vmi(node: Node) -> None:
    for number in range(HUNG):
        node.hand_over(f"hung-{number}", hangs=True)
    await until(lambda: all(contact.asked == ["start domain"] for contact in node.contacts.values()), "every start")
    node.hand_over("web")
    await until(lambda: node.phase("web") == "Running", "Running")
    node.hand_over("web", phase="Running", deleting=True)
    await until(lambda: "shut down" in node.contacts["web"].asked, "the power button")
    assert {node.phase(f"hung-{number}") for number in range(HUNG)} == {"Scheduled"}


async def test_a_hung_launcher_gets_one_operation_at_a_time(node: Node) -> None:
    node.hand_over("hung", hangs=True)
    await until(lambda: node.contacts["hung"].asked == ["start domain"], "its start")
    node.hand_over("hung", hangs=True)
    node.hand_over("hung", hangs=True, deleting=True)
    await asyncio.sleep(0.02)
    assert node.contacts["hung"].asked == ["start domain"]
