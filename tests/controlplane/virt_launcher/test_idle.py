# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher whose guest wants nothing: who wakes up, and that its console is there when something happens."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from controlplane.domain import layout
from tests.controlplane.virt_launcher.launched import UID, boot, connect, define, domain, until
from tests.controlplane.virt_launcher.launcher_pod import LauncherPod
from tests.controlplane.virt_launcher.wakes import wakes

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

IDLE_SECONDS = 15.0
LOOKS = 4
"""Whoever else is busy on the machine wakes threads more often than they need to be, never less often."""


def on_node(pod: LauncherPod, path: str) -> pathlib.Path:
    """Where a file of the launcher's emptyDir is for the node."""
    return pod.run / pathlib.Path(path).relative_to(layout.RUN)


def opened(pod: LauncherPod, program: str) -> set[str]:
    """What a program of the Pod has open, by the names in there."""
    (pid,) = pod.pids(program)
    return {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}


async def test_an_idle_launcher_wakes_at_most_twice_a_second(pod: LauncherPod) -> None:
    """In all: init, supervisor, libvirtd and QEMU. The guest is paused, so that nothing is its own."""
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    await asyncio.sleep(IDLE_SECONDS)  # whoever is busy with the start comes to rest
    for _unused in range(LOOKS):
        seen = await wakes(pod, IDLE_SECONDS)
        if seen.per_second <= 2:
            break
    await connection.close()
    assert {path.rpartition("/")[2] for path in pod.programs().values()} == {
        "dumb-init",
        "python3",
        "libvirtd",
        "qemu-system-x86_64",
    }
    assert seen.per_second <= 2, seen.by_thread


async def test_whoever_could_wait_for_an_event_does(pod: LauncherPod) -> None:
    """QEMU has no terminal, which it would have to look at every second; the supervisor is told what is written."""
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    listened = {layout.RUN, layout.QEMU_LOGS}
    await until(lambda: listened <= opened(pod, "python3"), "supervisor that listens", pod)
    assert not [item for item in opened(pod, "qemu-system-x86_64") if re.search(r"/dev/(ptmx|pts/)", item)]

    with on_node(pod, layout.SERIAL_LOG).open("ab") as file:
        file.write(b"a word in silence\n")
    await until(lambda: "a word in silence\n" in pod.console, "word on the console", pod)
    with on_node(pod, layout.qemu_log(UID)).open("ab") as file:
        file.write(b"qemu-system-x86_64: a guest did what it should not\n" * 200_000)
        written = file.tell()
    await until(
        lambda: on_node(pod, layout.qemu_log(UID)).stat().st_blocks * 512 < written / 2, "log that was cut", pod
    )
    await connection.close()


@asynccontextmanager
async def closed_at_the_end(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        await writer.wait_closed()


async def press_enter_until_asked_who(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As a person does: a getty that begins throws away what was typed before, and login waits after a wrong name."""
    while True:
        writer.write(b"\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await reader.readuntil(b"login: ")
                return


async def test_whoever_connects_to_the_console_speaks_with_the_guest_and_the_next_one_too(pod: LauncherPod) -> None:
    """The log has all of it, whoever is there."""
    connection = await connect(pod)
    await boot(pod, connection)
    for name in ("first", "second"):
        reader, writer = await asyncio.open_unix_connection(str(on_node(pod, layout.SERIAL_SOCKET)))
        async with closed_at_the_end(writer), asyncio.timeout(60):
            await press_enter_until_asked_who(reader, writer)
            writer.write(f"no-{name}\n".encode())
            await reader.readuntil(f"no-{name}".encode())
        await until(lambda: f"no-{name}" in pod.console, "what was typed in the log", pod)  # noqa: B023
    await connection.close()


async def test_a_console_of_the_version_before_is_copied_as_well(pod: LauncherPod) -> None:
    """A virt-handler that is not exchanged yet asks for a terminal."""
    connection = await connect(pod)
    socket = f'<source mode="bind" path="{layout.SERIAL_SOCKET}" />'
    text = domain(pod)
    assert socket in text
    before = text.replace(socket, "").replace('<serial type="unix">', '<serial type="pty">')
    guest = await boot(pod, connection, before)
    assert "/dev/pts/" in await guest.described(str)
    pod.terminate()
    assert pod.wait() == 0
    assert "reboot: Power down" in pod.console.splitlines()[-1]
    await connection.close()
