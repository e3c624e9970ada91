# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Executes the reconcilers' actions on one launcher: one method for each action. The decisions are in vmi/.

Errors of every operation: StartRefused and VerbRefused have the reason. After NoContact, the operation may have
happened.
"""

from __future__ import annotations

from functools import singledispatchmethod

from controlplane.virt_handler.launchers.connection import LauncherConnection
from controlplane.virt_handler.launchers.description import masquerade_of
from controlplane.virt_handler.launchers.domain_start import DomainStart
from controlplane.virt_handler.launchers.memory_progress import MemoryProgress
from controlplane.virt_handler.launchers.network import Network
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.io_error_resume import count_next
from controlplane.virt_handler.vmi.launcher_status import is_to_be_killed
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import (
    Destroy,
    Failure,
    Operation,
    PlugCpus,
    PlugMemory,
    PrepareNetwork,
    Resume,
    ShutDown,
    StartDomain,
)


class Operations:
    """The operations of one launcher."""

    def __init__(
        self,
        record: LauncherRecord,
        connection: LauncherConnection,
        tools: Tools,
        network: Network,
        memory: MemoryProgress,
    ) -> None:
        self._record = record
        self._connection = connection
        self._tools = tools
        self._network = network
        self._memory = memory
        self._start = DomainStart(record, connection, tools)

    @singledispatchmethod
    async def perform(self, action: Operation, _inputs: OperationInputs) -> None:
        """Execute an action, and wait for its end."""
        raise TypeError(f"no operation for {type(action).__name__}")

    @perform.register
    async def _prepare_network(self, _action: PrepareNetwork, inputs: OperationInputs) -> None:
        """Set up the Pod's network once per session. The session repairs it from then on."""
        record, vmi = self._record, inputs.vmi
        if record.status.is_network_ready or vmi is None:
            return
        try:
            wanted = masquerade_of(vmi, record.pod)
            interface = None if wanted is None else await self._tools.node.set_up_network(record.pod.uid, wanted)
        except ValueError as error:
            if not record.status.has_run:
                record.publish(failure=Failure("InvalidSpec", str(error)))
            raise StartRefused(str(error)) from error
        except (NodeAway, NotThere) as error:
            raise NoContact(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot set up the Pod's network: {error}") from error
        self._network.keep(wanted)
        record.publish(is_network_ready=True, interface=interface)

    @perform.register
    async def _start_domain(self, _action: StartDomain, inputs: OperationInputs) -> None:
        began = self._tools.clock.monotonic()
        if inputs.authorize_start is not None:
            await self._start.run(inputs.authorize_start)
            self._tools.started(self._tools.clock.monotonic() - began)

    @perform.register
    async def _shut_down(self, _action: ShutDown, _inputs: OperationInputs) -> None:
        self._record.publish(shutdown_asked_at=self._tools.clock.monotonic())
        await self._connection.run_if_up(lambda guest: guest.shutdown())

    @perform.register
    async def _destroy(self, _action: Destroy, _inputs: OperationInputs) -> None:
        status, kills = self._record.status, is_to_be_killed(self._record.status)
        self._record.publish(destroys=status.destroys + 1, destroy_asked_at=self._tools.clock.monotonic())
        await self._connection.run_if_up(lambda guest: guest.kill() if kills else guest.destroy())
        await self._connection.refresh()

    @perform.register
    async def _resume(self, _action: Resume, _inputs: OperationInputs) -> None:
        now = self._tools.clock.monotonic()
        self._record.publish(resume_asked_at=now, resumes=count_next(self._record.status, now))
        await self._connection.run_if_up(lambda guest: guest.resume())

    @perform.register
    async def _plug_cpus(self, action: PlugCpus, _inputs: OperationInputs) -> None:
        await self._connection.run_if_up(lambda guest: guest.set_vcpus(action.count))
        await self._connection.reread()
        observed = self._record.status.observed
        if observed is not None and observed.vcpus not in (0, action.count):
            # Without an error the reconciler would repeat the action at once, in a loop.
            message = f"libvirt reported that the guest has {action.count} virtual CPUs, but it has {observed.vcpus}"
            raise NoContact(message)

    @perform.register
    async def _plug_memory(self, action: PlugMemory, _inputs: OperationInputs) -> None:
        self._connection.domain.note(())  # the description changes, even if no response comes
        await self._connection.run_if_up(lambda guest: guest.set_memory(action.requested_bytes))
        await self._connection.reread()
        self._memory.begin()
        observed = self._record.status.observed
        if observed is not None and observed.requested_bytes != action.requested_bytes:
            raise NoContact("libvirt reported that it requested the new memory from the guest, but it did not")
