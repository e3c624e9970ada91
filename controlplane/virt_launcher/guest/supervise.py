# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the services for the guest, from the end of the preparation until the guest has ended.

It retries after each failure: no failure of the launcher may end a guest.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
from collections.abc import Awaitable, Callable

from controlplane.api.launch_plan import LaunchPlan
from controlplane.domain import layout
from controlplane.hypervisor.connection import register_event_loop
from controlplane.virt_launcher.dhcp.server import serve_dhcp
from controlplane.virt_launcher.guest import libvirtd
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness
from controlplane.virt_launcher.guest.libvirtd_restart import keep_libvirtd
from controlplane.virt_launcher.guest.watch import GuestExit, GuestWatch
from controlplane.virt_launcher.logs import qemu_log
from controlplane.virt_launcher.logs.console import ConsoleCopy, Output
from controlplane.virt_launcher.logs.directory_watch import DirectoryWatch
from controlplane.virt_launcher.logs.follow import follow_logs
from controlplane.virt_launcher.probes.server import serve_probes

LINGER_SECONDS = 0.3
"""libvirtd runs this long after the guest's end, so that virt-handler also observes the end and its reason."""
EXTRA_SECONDS = 20.0
"""Timeout of a forced end after the grace period. Then the launcher exits, and it is unknown how the guest ended."""
_RETRY_SECONDS = 1.0
_STANDARD_OUTPUT = 1

log = logging.getLogger(__name__)


async def supervise(plan: LaunchPlan, first_libvirtd: subprocess.Popen[bytes]) -> GuestExit:
    """Run libvirtd, DHCP, probes and the console until the guest has ended; return how it ended."""
    register_event_loop()
    stop = asyncio.Event()
    liveness = LibvirtdLiveness(asyncio.get_running_loop().time)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as group:
        services = [
            group.create_task(keep_libvirtd(first_libvirtd, liveness)),
            group.create_task(_retry("logs", lambda: _follow_logs(plan.domain))),
        ]
        if plan.dhcp is not None:
            dhcp = plan.dhcp
            services.append(group.create_task(_retry("dhcp", lambda: serve_dhcp(dhcp))))
        if plan.probes:
            services.append(group.create_task(_retry("probes", lambda: serve_probes(plan.domain, plan.probes))))
        guest_exit = await _wait_for_exit(plan, stop, liveness)
        log.info("the guest has ended", extra={"because": guest_exit.message, "exit_code": guest_exit.exit_code})
        await asyncio.sleep(LINGER_SECONDS)
        for task in services:
            task.cancel()
    return guest_exit


async def _follow_logs(domain: str) -> None:
    console = ConsoleCopy(layout.SERIAL_LOG, Output(_STANDARD_OUTPUT))
    with DirectoryWatch(layout.RUN, layout.QEMU_LOGS) as watch:
        await follow_logs(console, lambda: qemu_log.trim(layout.qemu_log(domain)), watch)


async def _wait_for_exit(plan: LaunchPlan, stop: asyncio.Event, liveness: LibvirtdLiveness) -> GuestExit:
    """Wait for the guest's end; after `stop`, shut the guest down."""
    watch = GuestWatch(plan.domain, libvirtd.SOCKET, liveness, is_acpi_expected=plan.grace_period_seconds > 0)
    async with asyncio.TaskGroup() as group:
        ended = group.create_task(watch.wait_for_exit())
        stopping = group.create_task(stop.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        tasks: list[asyncio.Task[GuestExit]] = [ended]
        if not ended.done():
            log.info("shutting the guest down", extra={"grace_seconds": plan.grace_period_seconds})
            tasks.append(group.create_task(watch.bring_down(plan.grace_period_seconds)))
        limit = None if ended.done() else plan.grace_period_seconds + EXTRA_SECONDS
        done, _unused = await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        guest_exit = _first(tasks, done)
        for task in (*tasks, stopping):
            task.cancel()
    return guest_exit


def _first(tasks: list[asyncio.Task[GuestExit]], done: set[asyncio.Task[GuestExit]]) -> GuestExit:
    """Return the first result. An observed end takes precedence over a forced one."""
    for task in tasks:
        if task in done:
            return task.result()
    return GuestExit(1, "the Pod was ended, and it is unknown how its guest ended: libvirtd did not respond")


async def _retry(service: str, serve: Callable[[], Awaitable[None]]) -> None:
    """Run a service until cancelled, and restart it whenever it fails: the guest does not depend on it."""
    while True:
        try:
            await serve()
        except Exception:
            log.exception("a service failed and is restarted", extra={"service": service})
        await asyncio.sleep(_RETRY_SECONDS)
