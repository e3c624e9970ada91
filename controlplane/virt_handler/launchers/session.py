# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The session with one launcher, while its Pod exists: its parts, and one operation at a time.

A reconciler starts an operation and does not wait, so a launcher that hangs blocks no worker. `launcher()` shows the
operation while it runs, and its failure. The end of an operation enqueues the VMI. An operation starts at once or is
refused: when a queued operation starts, its reason may not hold any more.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import Pod, sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.agent import AgentState
from controlplane.links.handler import Verb
from controlplane.virt_handler.launchers.agent import Agent
from controlplane.virt_handler.launchers.connection import LauncherConnection
from controlplane.virt_handler.launchers.description import has_kvm
from controlplane.virt_handler.launchers.freeze import Freeze
from controlplane.virt_handler.launchers.guest_time import GuestTime
from controlplane.virt_handler.launchers.memory_progress import MemoryProgress
from controlplane.virt_handler.launchers.migration_transfer import MigrationTransfer
from controlplane.virt_handler.launchers.network import Network
from controlplane.virt_handler.launchers.operations import Operations
from controlplane.virt_handler.launchers.pace import resync_pause
from controlplane.virt_handler.launchers.ports import Guest, NodeError
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.launchers.user_requests import UserRequests
from controlplane.virt_handler.vmi.launcher_status import is_guest_up
from controlplane.virt_handler.vmi.ports import (
    NO_INPUTS,
    Busy,
    NoContact,
    OperationInputs,
    StartRefused,
    VerbRefused,
    Writes,
)
from controlplane.virt_handler.vmi.world import Expected, FailedOperation, Launcher, Operation

log = logging.getLogger(__name__)


class Session:
    """Implements vmi.ports.Session."""

    def __init__(
        self,
        pod: Pod,
        vmi_uid: str,
        tools: Tools,
        changed: Callable[[], None],
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        ended: Callable[[], None] | None = None,
    ) -> None:
        """changed: called when the status changes; ended: after an operation. spawn: runs a coroutine in a task."""
        self.record = LauncherRecord(pod, vmi_uid, changed)
        self._tools = tools
        self._spawn = spawn
        self._ended = ended or changed
        self._operation = ""
        self._failed: FailedOperation | None = None
        self.agent = Agent(tools.clock, tools.random, tools.questions, self._take_agent_info)
        self.freeze = Freeze(self.agent, tools.clock)
        self.guest_time = GuestTime(self.agent, tools.clock)
        self.memory = MemoryProgress(self._reread, lambda: self.record.status.observed)
        self.network = Network(
            tools.node,
            pod.uid,
            tools.clock,
            pause=lambda: resync_pause(tools.resync_seconds, tools.random()),
            trouble=lambda message: self.record.publish(network_trouble=message),
            has_guest=lambda: self.record.status.is_connected and is_guest_up(self.record.status.state),
        )
        self.connection = LauncherConnection(
            self.record,
            tools,
            on_look=self._after_look,
            followers=(
                self.agent.follow,
                self.freeze.follow,
                self.guest_time.follow,
                self.network.follow,
                self.memory.follow,
            ),
        )
        self.operations = Operations(self.record, self.connection, tools, self.network, self.memory)
        self.user_requests = UserRequests(self.record, self.connection, self.agent, self.freeze)
        self.migration = MigrationTransfer(self.record, self.connection, tools)

    @property
    def is_busy(self) -> bool:
        return self._operation != ""

    def launcher(self) -> Launcher:
        """Return the launcher's current state."""
        return replace(self.record.launcher(), operation=self._operation, failed_operation=self._failed)

    def expect(self, expected: Expected) -> None:
        """Keep the VMI that was read before the hand-over."""
        self.record.expected = expected
        self.record.changed()

    def admit(self) -> None:
        """Connect to the launcher from now on."""
        self.connection.admit()

    async def run(self) -> None:
        """Run the session until the Pod is over."""
        capabilities = asyncio.create_task(self._give_capabilities())  # it may take long; nothing waits for it
        try:
            await self.connection.run()
        finally:
            capabilities.cancel()

    def perform(self, action: Operation, inputs: OperationInputs = NO_INPUTS) -> None:
        """Start an operation. Raises NoContact while another one runs."""
        name = operation_name(action)
        if self._operation:
            raise NoContact(f"cannot {name}: the launcher is busy with another operation ({self._operation})")
        self._operation = name
        self._spawn(self._perform(name, action, inputs))

    async def execute_user_request(
        self, verb: Verb, vmi: VirtualMachineInstance | None, *, thaw_after: int = 0
    ) -> None:
        """Execute a user's request and wait for its end. Raises Busy, VerbRefused, NoContact.

        thaw_after: seconds after which frozen file systems are thawed; 0: never. Cancelling the call does not cancel
        the request. A failed request is not reported as a failed operation.
        """
        if self._operation:
            raise Busy(f"the launcher is busy with another operation ({self._operation}); try again in a moment")
        self._operation = verb
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._spawn(self._execute_user_request(verb, vmi, thaw_after, ended))
        await asyncio.shield(ended)

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Query the guest's agent, also while an operation runs: a query changes nothing. VerbRefused, NoContact."""
        return await self.user_requests.inquire(commands)

    async def take_screenshot(self) -> bytearray:
        """Take a picture of the guest's screen, also while an operation runs. VerbRefused, NoContact."""
        return await self.user_requests.take_screenshot()

    def transfer(self, vmi: VirtualMachineInstance, migration: MigrationState, writes: Writes) -> None:
        """Start to send the guest to its migration's target. That may take hours, so operations run beside it.

        Raises NoContact while an operation runs.
        """
        if self._operation:
            raise NoContact(
                f"cannot begin a migration: the launcher is busy with another operation ({self._operation})"
            )
        self.migration.expect(migration)
        self._spawn(self.migration.run(vmi, migration, writes))

    def abort_transfer(self) -> None:
        """Abort the current migration."""
        self._spawn(self.migration.abort())

    async def _perform(self, name: str, action: Operation, inputs: OperationInputs) -> None:
        failed: FailedOperation | None = None
        try:
            await self.operations.perform(action, inputs)
        except StartRefused as error:
            failed = self._failure(name, str(error), is_refusal=True)
        except NoContact as error:
            failed = self._failure(name, str(error), is_refusal=False)
        except Exception as error:
            log.exception("bug in an operation", extra={"operation": name, **self.record.log_fields})
            failed = self._failure(name, str(error), is_refusal=False)
        finally:
            self._operation, self._failed = "", failed
            self._ended()

    async def _execute_user_request(
        self, verb: Verb, vmi: VirtualMachineInstance | None, thaw_after: int, ended: asyncio.Future[None]
    ) -> None:
        raised: BaseException = NoContact("virt-handler is being stopped")
        try:
            await self.user_requests.execute(verb, vmi, thaw_after=thaw_after)
            ended.set_result(None)
        except (VerbRefused, NoContact) as error:
            raised = error
        except Exception as error:
            log.exception("bug in a user request", extra={"verb": verb, **self.record.log_fields})
            raised = NoContact(f"internal error of virt-handler: {type(error).__name__}")
        finally:
            if not ended.done():
                ended.set_exception(raised)
                ended.exception()  # marks it as retrieved: the caller may be gone
            self._operation = ""
            self._ended()

    def _failure(self, name: str, message: str, *, is_refusal: bool) -> FailedOperation:
        extra = {"operation": name, **self.record.log_fields, "error": sanitize(message)}
        log.warning("an operation failed", extra=extra)
        count = 1 if self._failed is None else self._failed.count + 1
        now = self._tools.clock.monotonic()
        return FailedOperation(sanitize(message), is_refusal=is_refusal, at=now, count=count)

    async def _give_capabilities(self) -> None:
        pod = self.record.pod
        try:
            await self._tools.node.give_capabilities(pod.uid, with_kvm=has_kvm(pod))
        except NodeError as error:
            log.warning("cannot provide the capability cache", extra={**self.record.log_fields, "error": str(error)})

    async def _reread(self) -> None:
        await self.connection.reread()

    def _after_look(self, guest: Guest | None) -> None:
        status = self.record.status
        has_agent = is_guest_up(status.state) and status.observed is not None and status.observed.is_agent_connected
        self.agent.look(guest, is_connected=has_agent)
        self.guest_time.look(status.state, has_agent=has_agent and guest is not None)

    def _take_agent_info(self, agent: AgentState) -> None:
        self.freeze.note(agent)
        self.record.publish(agent=agent)


def operation_name(action: Operation) -> str:
    """Return the name of an action in words: "plug cpus" of PlugCpus."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(action).__name__).lower()
