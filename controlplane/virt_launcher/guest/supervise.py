# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher's life after preparation: everything that runs beside the guest, until the guest has ended.

Whatever fails in here is begun again: no trouble of ours may end a guest.
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
from controlplane.virt_launcher.guest.watch import GuestWatch, Verdict
from controlplane.virt_launcher.logs import qemu_log
from controlplane.virt_launcher.logs.console import ConsoleCopy, Output
from controlplane.virt_launcher.logs.directory_watch import DirectoryWatch
from controlplane.virt_launcher.logs.follow import follow_logs
from controlplane.virt_launcher.probes.server import serve_probes

LINGER_SECONDS = 0.3
"""After the guest's end libvirtd stays this long, for virt-handler to see the same end with its reason."""
EXTRA_SECONDS = 20.0
"""After grace period and plug, so long until we end without having heard of the guest's end."""
_AGAIN_SECONDS = 1.0
_STANDARD_OUTPUT = 1

log = logging.getLogger(__name__)


async def supervise(plan: LaunchPlan, first_libvirtd: subprocess.Popen[bytes]) -> Verdict:
    """Keep libvirtd, DHCP and the console going until the guest has ended; say how it ended."""
    register_event_loop()
    is_told = asyncio.Event()
    liveness = LibvirtdLiveness(asyncio.get_running_loop().time)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, is_told.set)
    async with asyncio.TaskGroup() as group:
        beside = [
            group.create_task(keep_libvirtd(first_libvirtd, liveness)),
            group.create_task(_again("logs", lambda: _follow_logs(plan.domain))),
        ]
        if plan.dhcp is not None:
            dhcp = plan.dhcp
            beside.append(group.create_task(_again("dhcp", lambda: serve_dhcp(dhcp))))
        if plan.probes:
            beside.append(group.create_task(_again("probes", lambda: serve_probes(plan.domain, plan.probes))))
        verdict = await _until_the_end(plan, is_told, liveness)
        log.info("the guest has ended", extra={"because": verdict.message, "exit_code": verdict.exit_code})
        await asyncio.sleep(LINGER_SECONDS)
        for task in beside:
            task.cancel()
    return verdict


async def _follow_logs(domain: str) -> None:
    console = ConsoleCopy(layout.SERIAL_LOG, Output(_STANDARD_OUTPUT))
    with DirectoryWatch(layout.RUN, layout.QEMU_LOGS) as watch:
        await follow_logs(console, lambda: qemu_log.trim(layout.qemu_log(domain)), watch)


async def _until_the_end(plan: LaunchPlan, is_told: asyncio.Event, liveness: LibvirtdLiveness) -> Verdict:
    """Wait for the guest's end; once we are told to go, bring it about."""
    watch = GuestWatch(plan.domain, libvirtd.SOCKET, liveness, is_acpi_expected=plan.grace_period_seconds > 0)
    async with asyncio.TaskGroup() as group:
        ended = group.create_task(watch.verdict())
        told = group.create_task(is_told.wait())
        await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
        tasks: list[asyncio.Task[Verdict]] = [ended]
        if not ended.done():
            log.info("told to end the guest", extra={"grace_seconds": plan.grace_period_seconds})
            tasks.append(group.create_task(watch.bring_down(plan.grace_period_seconds)))
        limit = None if ended.done() else plan.grace_period_seconds + EXTRA_SECONDS
        done, _unused = await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        verdict = _first(tasks, done)
        for task in (*tasks, told):
            task.cancel()
    return verdict


def _first(tasks: list[asyncio.Task[Verdict]], done: set[asyncio.Task[Verdict]]) -> Verdict:
    """Return the verdict of whoever has one; what was seen goes before what was brought about."""
    for task in tasks:
        if task in done:
            return task.result()
    return Verdict(1, "the Pod had to end, and nobody could say how its guest did: libvirtd did not answer")


async def _again(what: str, serve: Callable[[], Awaitable[None]]) -> None:
    """Run a service for ever, whatever happens to it: the guest does not depend on it."""
    while True:
        try:
            await serve()
        except Exception:
            log.exception("beginning again", extra={"service": what})
        await asyncio.sleep(_AGAIN_SECONDS)
