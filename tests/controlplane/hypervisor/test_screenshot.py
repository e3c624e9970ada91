# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Screenshots by libvirt's real client: what is read of the stream of a libvirtd that may be hostile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from controlplane.hypervisor import screenshot
from controlplane.hypervisor.connection import Connection, open_connection
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import Disconnected, HypervisorError, NotText, ResponseTooLong, TimedOut
from controlplane.hypervisor.events import ConnectionClosed
from controlplane.hypervisor.message_filter import UNEXPECTED_MESSAGE
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import Behaviour, Caller, Spawn

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]


async def opened(spawn: Spawn, behave: Behaviour, seconds: float = 20.0) -> tuple[Connection, Domain]:
    connection = await open_connection(spawn(behave).uri, deadline_seconds=seconds)
    guest = await connection.guest("web")
    assert guest is not None
    return connection, guest


async def test_a_picture_is_read_to_its_end_again_and_again(spawn: Spawn) -> None:
    parts = (b"P6\n", bytes(262_120), b"end")
    connection, guest = await opened(spawn, hostile.show(*parts))

    for _unused in range(3):
        assert await guest.screenshot() == b"".join(parts)

    await guest.state()
    assert connection.events.drain() == []
    await connection.close()


async def test_the_largest_picture_stays_within_the_quotas(spawn: Spawn) -> None:
    size = screenshot.LIMIT_BYTES
    connection, guest = await opened(spawn, hostile.show(*[bytes(256 << 10 >> 1)] * (2 * size // (256 << 10))))

    assert len(await guest.screenshot()) == size

    await guest.state()
    await connection.close()


async def test_a_longer_picture_is_refused_and_the_connection_stays(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshot, "LIMIT_BYTES", 1000)
    connection, guest = await opened(spawn, hostile.show(bytes(600), bytes(600), bytes(600)))

    with pytest.raises(ResponseTooLong, match="screenshot of domain web: the picture has more than 1000 bytes"):
        await guest.screenshot()

    await guest.state()
    await connection.close()


async def test_an_endless_picture_ends_the_connection(spawn: Spawn) -> None:
    connection, guest = await opened(spawn, hostile.show_endlessly)

    with pytest.raises(HypervisorError):
        await guest.screenshot()

    with pytest.raises(Disconnected):
        await guest.state()
    await connection.close()


async def test_a_picture_that_does_not_go_on_ends_at_the_deadline(spawn: Spawn) -> None:
    connection, guest = await opened(spawn, hostile.show_a_part, seconds=0.3)

    with pytest.raises(TimedOut, match=r"cannot take a screenshot of domain web: no answer within 0\.3 s"):
        await guest.screenshot()

    await connection.close()


async def test_more_of_a_stream_after_its_end_ends_the_connection(spawn: Spawn) -> None:
    late = hostile.part(1, b"more")

    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if program == hostile.PROGRAM and procedure == hostile.STATE:
            caller.transport.sendall(late)
        return hostile.show(b"P6\n")(caller, program, procedure, serial)

    connection, guest = await opened(spawn, behave)
    assert await guest.screenshot() == b"P6\n"

    with suppress(HypervisorError):
        await guest.state()

    assert await connection.events.get() == ConnectionClosed(UNEXPECTED_MESSAGE)
    await connection.close()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (
            lambda serial: hostile.fail(hostile.SCREENSHOT, serial, b"no screens to take screenshot from"),
            HypervisorError,
        ),
        (
            lambda serial: hostile.message(
                hostile.SCREENSHOT, hostile.REPLY, serial, hostile.OPTIONAL + hostile.string(hostile.NOT_TEXT)
            ),
            NotText,
        ),
    ],
    ids=["refused", "no text"],
)
async def test_a_failed_call_is_an_error_and_the_connection_can_be_closed(
    spawn: Spawn, reply: Callable[[int], bytes], error: type[Exception]
) -> None:
    def behave(caller: Caller, program: int, procedure: int, serial: int) -> bool:
        if (program, procedure) != (hostile.PROGRAM, hostile.SCREENSHOT) or caller.kind == hostile.STREAM:
            return False
        caller.transport.sendall(reply(serial))
        return True

    connection, guest = await opened(spawn, behave)

    with pytest.raises(error, match="cannot take a screenshot of domain web"):
        await guest.screenshot()

    await connection.close()
