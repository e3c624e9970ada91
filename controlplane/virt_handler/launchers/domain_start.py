# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defines and starts one launcher's domain after the API server grants the run."""

from __future__ import annotations

import logging

from controlplane.api.objects.pod import abbreviate
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain, TimedOut, WrongState
from controlplane.virt_handler.launchers.connection import LauncherConnection
from controlplane.virt_handler.launchers.description import describe_domain
from controlplane.virt_handler.launchers.ports import Connection, NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.launcher_status import FailedStarts
from controlplane.virt_handler.vmi.liveness import is_startable
from controlplane.virt_handler.vmi.ports import Granted, NoContact, StartRefused
from controlplane.virt_handler.vmi.world import Failure

log = logging.getLogger(__name__)


class DomainStart:
    """Starts the domain of one launcher."""

    def __init__(self, record: LauncherRecord, connection: LauncherConnection, tools: Tools) -> None:
        self._record = record
        self._connection = connection
        self._tools = tools
        self._failed = FailedStarts()
        self._is_in_doubt = False
        """A start got no response, and the domain has not been read since."""

    async def run(self, authorize: Granted) -> None:
        """Define the domain and start it. StartRefused, NoContact.

        Slow steps come first. The grant is checked last, because it may be revoked meanwhile.
        """
        connection, record = self._connection.require(), self._record
        if self._is_in_doubt:
            await self._connection.refresh()
            self._is_in_doubt = False
            if not is_startable(record.status):
                return  # the start took effect and the guest may have ended: a second start would be a second run
        report = await self._read_report()
        async with self._connection.look_lock:
            vmi = await authorize()
            await self._define_and_start(connection, vmi, self._describe(vmi, report))
        try:
            await self._connection.refresh()
        except NoContact:
            record.publish(has_run=True)  # libvirt confirmed the start; a restarted libvirtd may not know the domain
            raise
        if is_startable(record.status):  # without an error, the reconciler would repeat the start at once, in a loop
            raise self._refuse(HypervisorError("libvirt reported that it started the domain, but the domain is off"))

    async def _define_and_start(self, connection: Connection, vmi: VirtualMachineInstance, text: str) -> None:
        try:
            guest = await connection.define(text)
            self._connection.domain.begin()
            await guest.start(is_paused=vmi.spec.is_start_paused)
            log.info("domain started", extra=self._record.log_fields)
        except WrongState:
            log.info("the domain runs already", extra=self._record.log_fields)
        except (Disconnected, TimedOut) as error:
            self._is_in_doubt = True
            raise NoContact(str(error)) from error
        except HypervisorError as error:
            raise self._refuse(error) from error

    def _refuse(self, error: HypervisorError) -> StartRefused:
        now, is_final = self._tools.clock.monotonic(), isinstance(error, InvalidDomain)
        if (failure := self._failed.note(str(error), now, is_final=is_final)) is not None:
            self._record.publish(failure=failure)
        return StartRefused(str(error))

    async def _read_report(self) -> bytes:
        try:
            return await self._tools.node.read_report(self._record.pod.uid)
        except NotThere as error:
            raise NoContact("the launcher has not reported yet") from error
        except NodeAway as error:
            raise NoContact(str(error)) from error
        except Refused as error:
            raise self._fail_for_good(str(error)) from error
        except NodeError as error:
            raise StartRefused(f"cannot read the launcher's report: {error}") from error

    def _describe(self, vmi: VirtualMachineInstance, report: bytes) -> str:
        try:
            return describe_domain(vmi, self._record.pod, report, self._record.status.interface)
        except ValueError as error:
            raise self._fail_for_good(str(error)) from error

    def _fail_for_good(self, message: str) -> StartRefused:
        """Publish that this domain can never be started."""
        self._record.publish(failure=Failure("InvalidDomain", abbreviate(message)))
        return StartRefused(message)
