# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a session that sends its guest."""

from __future__ import annotations

import pytest

from controlplane.api.objects.migration_state import MigrationState
from controlplane.domain.state import State
from controlplane.virt_handler.launchers.ports import Failed, Send, TransferRequest
from controlplane.virt_handler.vmi.ports import Writes
from controlplane.virt_handler.vmi.world import Transfer
from tests.controlplane.virt_handler.builders import RUNNING
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage
from tests.controlplane.virt_handler.migrating import WHOLE, stopping


async def _nothing() -> None:
    return None


@pytest.fixture
async def stage() -> SessionStage:
    return SessionStage()


async def transfer(stage: SessionStage, send: Send, uid: str = "m") -> None:
    migration, state = stage.session.migration, MigrationState(migration_uid=uid)
    migration.send = send
    migration.expect(state)
    await migration.run(stopping(), state, Writes(_nothing, _nothing))


@pytest.mark.parametrize(("after", "has_gone_on"), [(WHOLE, False), (RUNNING, True)], ids=["stays paused", "resumes"])
async def test_after_a_failed_transfer_the_guest_has_resumed_once_it_is_seen_running(
    stage: SessionStage, after: State, has_gone_on: bool
) -> None:
    """Until then a pause belongs to the migration."""
    guest = await stage.define()

    async def send(_unused: TransferRequest) -> None:
        await stage.look()
        assert not stage.status.has_gone_on, "it may yet be stopped"
        guest.life = after
        raise Failed("the tunnel broke")

    await stage.look()
    assert stage.status.has_gone_on
    await transfer(stage, send)
    await stage.look()
    assert stage.status.has_gone_on is has_gone_on
    assert stage.status.transfer == Transfer("m", is_over=True, reason="the tunnel broke")


async def test_a_guest_has_moved_when_it_left_even_if_the_transfer_then_fails(stage: SessionStage) -> None:
    await stage.define()
    transfers = list[Transfer | None]()

    async def send(request: TransferRequest) -> None:
        transfers.append(stage.status.transfer)
        request.left()
        transfers.append(stage.status.transfer)
        raise Failed("the last response is lost")

    await transfer(stage, send)
    moved = Transfer("m", is_over=True, has_moved=True)
    assert [*transfers, stage.status.transfer] == [Transfer("m"), moved, moved]


async def test_after_a_transfer_the_guest_state_is_unknown_until_the_next_read(stage: SessionStage) -> None:
    """The guest may have left. The old state would say that it stays, and end its target."""
    await stage.define()
    await stage.look()
    connection = stage.session.connection.current

    async def send(_unused: TransferRequest) -> None:
        stage.session.connection.current = None
        raise Failed("the last response is lost")

    await transfer(stage, send)
    assert not stage.status.is_connected
    stage.session.connection.current = connection
    await stage.look()
    assert stage.status.is_connected


async def test_an_abort_reaches_only_the_current_transfer(stage: SessionStage) -> None:
    await stage.define()
    unwanted = list[bool]()

    async def send(request: TransferRequest) -> None:
        unwanted.append(request.unwanted.is_set())
        await stage.session.migration.abort()
        unwanted.append(request.unwanted.is_set())
        assert stage.status.transfer is not None
        assert stage.status.transfer.abort_asked_at == stage.clock.seconds
        raise Failed("it was aborted")

    for uid in ("first", "second"):
        await transfer(stage, send, uid)
    assert unwanted == [False, True, False, True]


@pytest.mark.parametrize("requested", [0, 1 << 30], ids=["no plugged memory", "requested memory"])
async def test_an_emulated_guest_with_plugged_memory_is_sent_paused(stage: SessionStage, requested: int) -> None:
    guest = await stage.define()
    await guest.set_memory(requested)
    await stage.look()
    requests = list[TransferRequest]()

    async def send(request: TransferRequest) -> None:
        requests.append(request)

    await transfer(stage, send)
    assert [request.is_still for request in requests] == [requested > 0]


async def test_a_guest_that_is_not_ours_is_not_sent(stage: SessionStage) -> None:
    async def send(_unused: TransferRequest) -> None:
        raise AssertionError("it was sent")

    stage.connect()
    await transfer(stage, send)
    assert stage.status.transfer == Transfer("m", is_over=True, reason="VMI is not running")
