# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a session that sends its guest."""

from __future__ import annotations

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.domain.state import State
from controlplane.virt_handler.launchers.ports import Failed, TransferRequest
from controlplane.virt_handler.vmi.ports import Writes
from controlplane.virt_handler.vmi.world import Transfer
from tests.controlplane.virt_handler.builders import RUNNING, VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeConnection, FakeLibvirtd
from tests.controlplane.virt_handler.launchers.test_operations import a_session
from tests.controlplane.virt_handler.moving import WHOLE, stopping


async def _nothing() -> None:
    return None


@pytest.mark.parametrize(("left", "has_gone_on"), [(WHOLE, False), (RUNNING, True)], ids=["stands still", "goes on"])
async def test_after_a_failed_transfer_the_guest_has_resumed_once_it_is_seen_running(
    left: State, has_gone_on: bool
) -> None:
    """Until then a pause belongs to the migration."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    guest.life = RUNNING

    async def send(_unused: TransferRequest) -> None:
        await session.connection.refresh()
        assert not session.launcher().status.has_gone_on, "it may yet be stopped"
        guest.life = left
        raise Failed("the tunnel broke")

    session.migration.send = send
    await session.connection.refresh()
    assert session.launcher().status.has_gone_on

    session.migration.expect(MigrationState(migration_uid="m"))
    await session.migration.run(stopping(), MigrationState(migration_uid="m"), Writes(_nothing, _nothing))
    await session.connection.refresh()
    assert session.launcher().status.has_gone_on is has_gone_on


async def test_a_guest_has_moved_when_it_left_even_if_the_transfer_then_fails() -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    moved = Transfer("m", is_over=True, has_moved=True)
    transfers = list[Transfer | None]()

    async def send(order: TransferRequest) -> None:
        transfers.append(session.launcher().status.transfer)
        order.left()
        transfers.append(session.launcher().status.transfer)
        raise Failed("the last word is lost")

    session.migration.send = send
    session.migration.expect(MigrationState(migration_uid="m"))
    await session.migration.run(stopping(), MigrationState(migration_uid="m"), Writes(_nothing, _nothing))
    assert [*transfers, session.launcher().status.transfer] == [Transfer("m"), moved, moved]


async def test_after_a_transfer_the_guest_state_is_unknown_until_the_next_read() -> None:
    """The guest may have left. The old state would say that it stays, and end its target."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    await session.connection.refresh()

    async def send(_unused: TransferRequest) -> None:
        session.connection.current = None
        raise Failed("the last word is lost")

    session.migration.send = send
    session.migration.expect(MigrationState(migration_uid="m"))
    await session.migration.run(stopping(), MigrationState(migration_uid="m"), Writes(_nothing, _nothing))
    assert not session.launcher().status.is_connected
    session.connection.current = connection
    await session.connection.refresh()
    assert session.launcher().status.is_connected


async def test_an_abort_reaches_only_the_current_transfer() -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    (await connection.define(domain_text())).life = RUNNING
    unwanted = list[bool]()

    async def send(order: TransferRequest) -> None:
        unwanted.append(order.unwanted.is_set())
        await session.migration.abort()
        unwanted.append(order.unwanted.is_set())
        raise Failed("it was given up")

    session.migration.send = send
    for uid in ("first", "second"):
        session.migration.expect(MigrationState(migration_uid=uid))
        await session.migration.run(stopping(), MigrationState(migration_uid=uid), Writes(_nothing, _nothing))
    assert unwanted == [False, True, False, True]


@pytest.mark.parametrize("requested", [0, 1 << 30], ids=["it has no more memory", "it was asked to have more"])
async def test_an_emulated_guest_with_plugged_memory_is_sent_paused(requested: int) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text().replace("type='kvm'", "type='qemu'"))
    guest.life = RUNNING
    await guest.set_memory(requested)
    await session.connection.refresh()
    orders = list[TransferRequest]()

    async def send(order: TransferRequest) -> None:
        orders.append(order)

    session.migration.send = send
    await session.migration.run(stopping(), MigrationState(migration_uid="m"), Writes(_nothing, _nothing))
    assert [transfer.is_still for transfer in orders] == [requested > 0]
