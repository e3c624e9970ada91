# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with one launcher Pod and virt-handler on it, for scenarios.

virt-node, the directory, the sockets and inotify are real. libvirt, the API server and the Pod's network are fakes with
behaviour.
"""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.ports import Json
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from controlplane.virt_handler.launchers.ports import Send
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.node_recovery.recovery import NodeRecovery
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.virt_handler.builders import NODE, POD_UID, vmi_object
from tests.controlplane.virt_handler.fakes import (
    FakeApi,
    FakeCache,
    FakeClock,
    FakeConnection,
    FakeHeartbeat,
    FakeLibvirtd,
    FakeNetwork,
    FakeProc,
    LauncherFiles,
    until,
)
from tests.controlplane.virt_handler.node.virt_node import VirtNode

KEY = Key("default", "web")
POD = Key("default", f"virt-launcher-web-{POD_UID[:4]}")


@dataclass
class Node:
    """A node with one launcher Pod and virt-handler."""

    pods: FakeCache
    vmis: FakeCache
    api: FakeApi
    clock: FakeClock
    libvirtd: FakeLibvirtd
    files: LauncherFiles
    network: FakeNetwork
    directory: PodsDirectory
    proc: FakeProc
    events: list[VmiEvent] = field(default_factory=list)
    resync_seconds: float = 300.0
    _task: asyncio.Task[None] | None = None
    registry: Registry | None = None
    virt_node: VirtNode | None = None
    recovery: NodeRecovery | None = None
    others: dict[str, FakeLibvirtd] = field(default_factory=dict)
    """Libvirtds of further launchers, by Pod UID."""
    send: Send | None = None
    """Sends a guest to its migration target. None: no migration is possible."""

    def __post_init__(self) -> None:
        self.heard = FakeHeartbeat(self.clock)

    def begin(self) -> None:
        """Start virt-handler."""
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Kill virt-handler. The launcher does not notice."""
        if self._task is not None:
            self._task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await self._task
        for cache in (self.pods, self.vmis):
            cache.end()
        self.libvirtd.hang_up()

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.api.objects[KEY]["status"])

    @property
    def phase(self) -> str:
        return str(self.status["phase"])

    def make_launcher(self) -> None:
        """Create the launcher's directory, report and socket."""
        self.files.make_directory()
        self.files.report()
        self.files.listen()

    def hand_over(self, **fields: Any) -> None:
        self.api.store(vmi_object("Scheduled", **fields))

    async def start(self) -> None:
        self.hand_over()
        await until(lambda: self.phase == "Running", "Running")

    async def _run(self) -> None:
        self.virt_node = VirtNode(self.directory, self.network, self.proc)
        client = NodeClient(self.virt_node.dial)
        tools = Tools(client, self.clock, self._connect, resync_seconds=self.resync_seconds)
        if self.send is not None:
            tools = replace(tools, send=self.send)

        def add_all() -> None:
            for key in self.vmis.keys():  # noqa: SIM118
                runner.add(key)

        # pylint: disable-next=unnecessary-lambda
        registry = self.registry = Registry(self.pods, tools, lambda key: runner.add(key))  # noqa: PLW0108 - runner is defined below
        recovery = self.recovery = NodeRecovery(
            registry,
            self.api,
            self.clock,
            self.heard,
            changed=add_all,
            record_event=self._record_event,
            wait=_wait_a_moment,
        )
        reconciler = VmiReconciler(
            NODE,
            self.vmis,
            registry,
            self.api,
            self.clock,
            record_event=self._record_event,
            start_blocked_reason=lambda: recovery.start_blocked_reason,
        )
        loop = asyncio.get_running_loop()

        class Running(FakeClock):  # the queue's delays are real and short
            def monotonic(self) -> float:
                return loop.time()

        runner: Runner[Any, Any, Any] = Runner(
            "vmi", reconciler, WorkQueue(BackOff(random.Random(1).random)), Running()
        )
        self.vmis.subscribe(lambda key, before, after: runner.add(key))
        add_all()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(client.run())
                group.create_task(registry.run())
                group.create_task(runner.run())
                group.create_task(recovery.run())
        finally:
            await self.virt_node.close()

    async def _connect(self, path: str) -> FakeConnection:
        """Connect to the libvirtd of the launcher that owns the socket."""
        there = os.readlink(path)
        return await next((libvirtd for uid, libvirtd in self.others.items() if uid in there), self.libvirtd).connect(
            path
        )

    async def _record_event(self, about: Json, event: VmiEvent) -> None:
        self.events.append(event)


async def _wait_a_moment(event: asyncio.Event, _unused: float) -> None:
    """Wait 5 ms at most: only tests move the node's clock."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.005):
            await event.wait()
