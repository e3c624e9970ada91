# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the source writes into the VMI before each step of a migration. If the VMI does not allow it, the step fails."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.migration_state import PRE_COPY, STOPPED
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import ApiError, Conflict
from controlplane.engine.ports import Api, Clock
from controlplane.virt_handler.vmi.migration_source import refuse_transfer
from controlplane.virt_handler.vmi.ports import NoContact, Session, Writes
from controlplane.virt_handler.vmi.world import BeginTransfer

TRIES = 5


def writes_of(vmi: VirtualMachineInstance, action: BeginTransfer, session: Session, api: Api, clock: Clock) -> Writes:
    """Return the writes of this migration. vmi: the VMI for which the transfer was decided."""
    meta = vmi.metadata
    key = Key(meta.namespace, meta.name)

    async def write(step: str, change: dict[str, Any], *, is_begun: bool) -> None:
        for _unused in range(TRIES):
            try:
                now = decode_vmi(await api.get(VIRTUAL_MACHINE_INSTANCE, key))
                if refusal := refuse_transfer(now, vmi, action, session.launcher(), is_begun=is_begun):
                    raise NoContact(f"the migration must not {step}: {refusal}")
                await api.patch(
                    VIRTUAL_MACHINE_INSTANCE,
                    key,
                    {"status": {"migrationState": change}},
                    subresource="status",
                    resource_version=now.metadata.resource_version,
                    uid=meta.uid,
                )
            except Conflict:
                continue
            except (ApiError, DecodeError) as error:
                raise NoContact(f"cannot write that the migration is to {step}: {error}") from error
            return
        raise NoContact(f"cannot write that the migration is to {step}: the VMI keeps changing")

    async def begin() -> None:
        change = {"startTimestamp": format_timestamp(clock.now()), "mode": PRE_COPY}
        await write("begin", change, is_begun=False)

    async def stop() -> None:
        await write("stop the guest", {"mode": STOPPED}, is_begun=True)

    return Writes(begin, stop)
