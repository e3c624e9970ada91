# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends one launcher's guest to the target of its migration, or aborts the migration. Publishes the outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import ApiError
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_handler.launchers.connection import LauncherConnection
from controlplane.virt_handler.launchers.ports import Failed, NodeError, Send, TransferRequest
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.hotplug import is_to_be_still
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused, Writes
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user
from controlplane.virt_handler.vmi.world import Transfer

log = logging.getLogger(__name__)


class MigrationTransfer:
    """The outgoing migration of one launcher's guest."""

    def __init__(self, record: LauncherRecord, connection: LauncherConnection, tools: Tools) -> None:
        self._record = record
        self._connection = connection
        self._clock = tools.clock
        self.send: Send = tools.send
        self._aborted = asyncio.Event()
        """Set when the current migration must be aborted."""

    def expect(self, migration: MigrationState) -> None:
        """Publish that the transfer of the guest begins."""
        self._aborted = asyncio.Event()
        self._record.publish(transfer=Transfer(migration.migration_uid), has_gone_on=False)

    async def run(self, vmi: VirtualMachineInstance, migration: MigrationState, writes: Writes) -> None:
        """Send the guest, and publish the outcome. Never raises."""
        reason, has_moved, uid = "virt-handler is being stopped", False, migration.migration_uid

        def left() -> None:
            nonlocal has_moved
            has_moved = True
            self._record.publish(transfer=Transfer(uid, is_over=True, has_moved=True))

        try:
            await self.send(await self._request(vmi, migration, writes, left))
            has_moved = True
        except (Failed, NoContact, NodeError, HypervisorError, ApiError, OSError) as error:
            reason = str(error)
        except Exception as error:
            log.exception("bug in a migration", extra=self._record.log_fields)
            reason = f"internal error of virt-handler: {type(error).__name__}"
        finally:
            reason = "" if has_moved else reason
            log.info("migration over", extra={**self._record.log_fields, "moved": has_moved, "because": reason})
            await self._refresh(has_moved=has_moved)
            transfer = Transfer(uid, is_over=True, has_moved=has_moved, reason=sanitize(reason))
            self._record.publish(transfer=transfer)

    async def _request(
        self, vmi: VirtualMachineInstance, migration: MigrationState, writes: Writes, left: Callable[[], None]
    ) -> TransferRequest:
        record = self._record
        guest = await self._connection.require().guest(record.vmi_uid)
        if guest is None or not record.has_own_domain:
            raise Failed("VMI is not running")
        return TransferRequest(
            vmi,
            migration,
            record.pod.uid,
            guest,
            is_paused_by_user(vmi, record.status),
            writes,
            is_still=is_to_be_still(record.status),
            left=left,
            unwanted=self._aborted,
        )

    async def _refresh(self, *, has_moved: bool) -> None:
        try:
            await self._connection.refresh()
        except NoContact as error:
            if not has_moved:  # the state from before the transfer does not show where the guest is
                self._record.publish(is_connected=False, trouble=sanitize(str(error)))

    async def abort(self) -> None:
        """Abort the current migration."""
        transfer = self._record.status.transfer
        if transfer is None or transfer.is_over:
            return
        self._record.publish(transfer=replace(transfer, abort_asked_at=self._clock.monotonic()))
        self._aborted.set()
        try:
            await self._connection.run_on_domain(lambda guest: guest.abort_job())
        except (VerbRefused, NoContact) as error:  # libvirt's job has not begun, or is over; the abort is retried
            extra = {**self._record.log_fields, "error": sanitize(str(error))}
            log.info("cannot abort a migration yet", extra=extra)
