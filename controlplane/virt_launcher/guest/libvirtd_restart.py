# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new libvirtd when one dies or hangs, for ever; and what it says, in our log.

QEMU is not libvirtd's to take along: it outlives libvirtd, and the next libvirtd takes it over again (83 ms measured)
from the state kept in the emptyDir. So a death of libvirtd is repaired and never ends a guest, and one that does not
answer any more is killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess

from controlplane.virt_launcher.guest.libvirtd import spawn
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness

_LINE_LIMIT = 2000
_SHORT_LIFE_SECONDS = 10.0
_FIRST_DELAY_SECONDS, _LAST_DELAY_SECONDS = 0.05, 5.0

log = logging.getLogger(__name__)


async def keep_libvirtd(first: subprocess.Popen[bytes], liveness: LibvirtdLiveness) -> None:
    """Watch over libvirtd for ever, and start a new one when it dies or hangs. first: the one that runs already."""
    process: subprocess.Popen[bytes] | None = first
    delay = _FIRST_DELAY_SECONDS
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        code = await _outlive(process, liveness) if process is not None else None
        delay = _FIRST_DELAY_SECONDS if loop.time() - began > _SHORT_LIFE_SECONDS else delay
        log.warning("libvirtd ended, starting another", extra={"exit_code": code, "delay_seconds": delay})
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LAST_DELAY_SECONDS)
        try:
            process = spawn()
        except OSError as error:  # no memory, no process left: this passes, or the kernel ends somebody
            log.warning("libvirtd cannot be started", extra={"error": str(error)})
            process = None


async def _outlive(process: subprocess.Popen[bytes], liveness: LibvirtdLiveness) -> int:
    """Log what libvirtd says until it is dead; return its exit code, negative for a signal."""
    assert process.stderr is not None
    descriptor = process.stderr.fileno()
    os.set_blocking(descriptor, False)
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    pid = os.pidfd_open(process.pid)
    loop.add_reader(pid, dead.set)
    loop.add_reader(descriptor, _log_lines, descriptor)
    try:
        await _wait_for_death(process, dead, liveness)
        _log_lines(descriptor)
        return process.wait()
    finally:
        loop.remove_reader(pid)
        loop.remove_reader(descriptor)
        os.close(pid)
        process.stderr.close()


async def _wait_for_death(process: subprocess.Popen[bytes], dead: asyncio.Event, liveness: LibvirtdLiveness) -> None:
    """Wait until libvirtd is dead, and bring that about when it has been silent for too long."""
    liveness.begin()
    while True:
        try:
            async with asyncio.timeout(max(0.0, liveness.seconds_left())):
                await dead.wait()
            return
        except TimeoutError:
            if liveness.seconds_left() > 0:
                continue
        log.warning("libvirtd does not answer, ending it", extra={"patience_seconds": liveness.patience})
        process.kill()
        liveness.give_up()


def _log_lines(descriptor: int) -> None:
    try:
        said = os.read(descriptor, 65536)
    except BlockingIOError:
        return
    if not said:  # closed while the process lives on: nothing more will come
        asyncio.get_running_loop().remove_reader(descriptor)
    for line in said.decode(errors="replace").splitlines():
        # its version and host name, before the first warning of each life, are for whoever debugs
        level = logging.DEBUG if ": info :" in line else logging.INFO
        log.log(level, "libvirtd says", extra={"line": line[:_LINE_LIMIT]})
