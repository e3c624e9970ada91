# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher with an idle guest: how often its threads wake up, and whether its console still works."""

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
"""Measurements. A busy machine causes additional wake-ups, never fewer."""


def on_node(pod: LauncherPod, path: str) -> pathlib.Path:
    """Return the node's path of a file in the launcher's emptyDir."""
    return pod.run / pathlib.Path(path).relative_to(layout.RUN)


def opened(pod: LauncherPod, program: str) -> set[str]:
    """Return the paths of the descriptors of a program in the Pod."""
    (pid,) = pod.pids(program)
    return {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}


async def test_an_idle_launcher_wakes_at_most_twice_a_second(pod: LauncherPod) -> None:
    """Counts init, supervisor, libvirtd and QEMU. The guest is paused and causes no wake-ups itself."""
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    await asyncio.sleep(IDLE_SECONDS)  # let the start settle
    for _unused in range(LOOKS):
        measured = await wakes(pod, IDLE_SECONDS)
        if measured.per_second <= 2:
            break
    await connection.close()
    assert {path.rpartition("/")[2] for path in pod.programs().values()} == {
        "dumb-init",
        "python3",
        "libvirtd",
        "qemu-system-x86_64",
    }
    assert measured.per_second <= 2, measured.by_thread


async def test_the_launcher_waits_for_events_instead_of_polling(pod: LauncherPod) -> None:
    """QEMU has no terminal, which it would poll every second. Signals tell the supervisor about log writes."""
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    listened = {layout.RUN, layout.QEMU_LOGS}
    await until(lambda: listened <= opened(pod, "python3"), "supervisor that listens", pod)
    assert not [path for path in opened(pod, "qemu-system-x86_64") if re.search(r"/dev/(ptmx|pts/)", path)]

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
    """Press Enter repeatedly, because a starting getty drops earlier input and login pauses after a wrong name."""
    while True:
        writer.write(b"\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await reader.readuntil(b"login: ")
                return


async def test_console_clients_talk_to_the_guest_one_after_another(pod: LauncherPod) -> None:
    """The log has everything, with or without a client."""
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


async def test_a_console_of_the_previous_version_is_copied_too(pod: LauncherPod) -> None:
    """A virt-handler that is not upgraded yet configures a terminal."""
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
