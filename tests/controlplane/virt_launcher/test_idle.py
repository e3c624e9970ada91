# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher with a paused guest: how often its threads wake up, and that it waits for events instead of polling."""

from __future__ import annotations

import asyncio
import os
import pathlib
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from controlplane.domain import layout
from tests.controlplane.virt_launcher.launched import PLAN, UID, connect, define, until
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod
from tests.controlplane.virt_launcher.wakeups import count_wakeups

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session")]

SETTLE_SECONDS = 5.0
MEASURE_SECONDS = 10.0
MEASUREMENTS = 6
"""A busy machine causes additional wake-ups, never fewer: one quiet measurement is enough."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def pod(
    images: Images, tmp_path_factory: pytest.TempPathFactory, libvirt_loop: None
) -> AsyncIterator[LauncherPod]:
    idle = LauncherPod(tmp_path_factory.mktemp("idle"), images, PLAN, {layout.image_mount("root"): images.guest})
    idle.start()
    try:
        connection = await connect(idle)
        guest = await define(idle, connection)
        await guest.start(is_paused=True)
        await connection.close()
        yield idle
    finally:
        idle.remove()


def on_node(pod: LauncherPod, path: str) -> pathlib.Path:
    """Return the node's path of a file in the launcher's emptyDir."""
    return pod.run / pathlib.Path(path).relative_to(layout.RUN)


def opened(pod: LauncherPod, program: str) -> set[str]:
    """Return the paths of the descriptors of a program in the Pod."""
    (pid,) = pod.pids(program)
    return {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}


async def test_an_idle_launcher_wakes_at_most_twice_a_second(pod: LauncherPod) -> None:
    """Counts init, supervisor, libvirtd and QEMU. The guest is paused and causes no wake-ups itself."""
    await asyncio.sleep(SETTLE_SECONDS)
    for _unused in range(MEASUREMENTS):
        measured = await count_wakeups(pod, MEASURE_SECONDS)
        if measured.per_second <= 2:
            break
    programs = {path.rpartition("/")[2] for path in pod.programs().values()}
    assert programs == {"dumb-init", "python3", "libvirtd", "qemu-system-x86_64"}
    assert measured.per_second <= 2, measured.by_thread


async def test_the_launcher_waits_for_events_instead_of_polling(pod: LauncherPod) -> None:
    """QEMU has no terminal, which it would poll every second. Signals tell the supervisor about log writes."""
    listened = {layout.RUN, layout.QEMU_LOGS}
    await until(lambda: listened <= opened(pod, "python3"), "supervisor that listens", pod)
    assert not [path for path in opened(pod, "qemu-system-x86_64") if re.search(r"/dev/(ptmx|pts/)", path)]
    with on_node(pod, layout.SERIAL_LOG).open("ab") as file:
        file.write(b"a word in silence\n")
    await until(lambda: "a word in silence\n" in pod.console, "word on the console", pod)
    log = on_node(pod, layout.qemu_log(UID))
    with log.open("ab") as file:
        file.write(b"qemu-system-x86_64: a guest did what it should not\n" * 200_000)
        written = file.tell()
    await until(lambda: log.stat().st_blocks * 512 < written / 2, "log that was cut", pod)
