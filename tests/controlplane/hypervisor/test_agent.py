# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guest agent commands through libvirt's real client: answers, and commands that are never answered."""

from __future__ import annotations

import asyncio
import threading

import pytest

from controlplane.hypervisor import domain as domain_module
from controlplane.hypervisor.connection import Connection, open_connection
from controlplane.hypervisor.domain import RESPONSE_LIMIT, Domain
from controlplane.hypervisor.errors import HypervisorError, NotText, ResponseTooLong, TimedOut
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import Hostile, Spawn
from tests.support.tasks import cancel_task

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

PING = '{"execute":"guest-ping"}'
TIMEOUT_SECONDS = 0.2


async def reach(server: Hostile) -> tuple[Connection, Domain]:
    connection = await open_connection(server.uri, deadline_seconds=TIMEOUT_SECONDS)
    guest = await connection.guest("web")
    assert guest is not None
    return connection, guest


async def test_an_answer_is_returned_unchanged(spawn: Spawn) -> None:
    connection, guest = await reach(spawn())
    assert await guest.ask_agent(PING, 1) == '{"return":{}}'
    await connection.close()


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (
            b"x" * (RESPONSE_LIMIT + 1),
            ResponseTooLong,
            f"its response has {RESPONSE_LIMIT + 1} characters, at most {RESPONSE_LIMIT} are read",
        ),
        (b"\xff\xfe", NotText, "cannot ask the agent of domain web"),
    ],
    ids=["too long", "not UTF-8"],
)
async def test_an_invalid_answer_does_not_close_the_connection(
    spawn: Spawn, answer: bytes, kind: type[HypervisorError], text: str
) -> None:
    connection, guest = await reach(spawn(hostile.answer_agent(answer)))
    with pytest.raises(kind, match=text):
        await guest.ask_agent(PING, 1)
    assert await guest.state()
    await connection.close()


@pytest.mark.parametrize("is_waited_for", [True, False], ids=["waited for", "its caller was cancelled"])
async def test_a_command_without_an_answer_leaves_no_thread(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch, is_waited_for: bool
) -> None:
    """The launcher does not answer. A regular libvirtd would end the command with an error."""
    monkeypatch.setattr(domain_module, "_LIBVIRT_WAIT_SECONDS", 0.0)
    connection, guest = await reach(spawn(hostile.silent_agent))
    asking = asyncio.create_task(guest.ask_agent(PING, 0))
    if is_waited_for:
        with pytest.raises(TimedOut, match="cannot ask the agent of domain web: no answer within"):
            await asking
    else:
        await asyncio.sleep(TIMEOUT_SECONDS / 4)
        await cancel_task(asking)
    async with asyncio.timeout(10):
        while [thread for thread in threading.enumerate() if "ask the agent" in thread.name]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await connection.close()
