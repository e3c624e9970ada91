# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""idle-launcher: one VM in a launcher Pod without a cluster; the wake-ups of all threads of the Pod together.

Measured twice: while the test guest is up and idle (it prints a line a second), and while it is paused, so that nothing
comes from the guest. The limit of wake-ups is for the latter. The idle guest has a limit of its own: QEMU's share of a
core, as the kernel counts it, which holds on a busy machine too. virt-handler is represented by its open connection.

IDLE_LAUNCHER_SECONDS: the time of each measurement.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from controlplane.domain import layout
from controlplane.hypervisor.connection import register_event_loop
from tests.controlplane.virt_launcher.launched import PLAN, boot, connect
from tests.controlplane.virt_launcher.launcher_pod import LauncherPod, built_images
from tests.controlplane.virt_launcher.wakeups import Wakeups, count_wakeups

QUIET_SECONDS, MEASURED_SECONDS = 15.0, 30.0
PER_SECOND_AT_MOST = 2.0
PERCENT_AT_MOST = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")

Report = Callable[[dict[str, Any]], None]


def run(report: Report) -> None:
    """Measure in its own Pod. Raises AssertionError after the last report when a limit is exceeded."""
    seconds = float(os.environ.get("IDLE_LAUNCHER_SECONDS") or MEASURED_SECONDS)
    with tempfile.TemporaryDirectory() as name:
        running, paused, share = asyncio.run(_measure(pathlib.Path(name), seconds))
    percent = round(share * 100, 2)
    _report(report, "idle-launcher-running", running, {})
    report({"name": "idle-guest", "value": percent, "unit": "% of a core", "target": PERCENT_AT_MOST})
    _report(report, "idle-launcher", paused, {"target": PER_SECOND_AT_MOST})
    failures = [f"an idle guest takes {percent} % of a core"] if percent > PERCENT_AT_MOST else []
    failures += [f"{paused.per_second:.2f} wakes a second"] if paused.per_second > PER_SECOND_AT_MOST else []
    if failures:
        raise AssertionError("; ".join(failures))


async def _measure(home: pathlib.Path, seconds: float) -> tuple[Wakeups, Wakeups, float]:
    """Return the wake-ups of the running and of the paused guest, and the running QEMU's share of a core."""
    register_event_loop()
    images = built_images(home / "images")
    (home / "pod").mkdir()
    pod = LauncherPod(home / "pod", images, PLAN, {layout.image_mount("root"): images.guest})
    try:
        pod.start()
        connection = await connect(pod)
        guest = await boot(pod, connection)
        await asyncio.sleep(QUIET_SECONDS)  # the work after a start is done
        spent = _processor_seconds(pod)
        running = await count_wakeups(pod, seconds)
        share = (_processor_seconds(pod) - spent) / running.seconds
        await guest.pause()
        await asyncio.sleep(QUIET_SECONDS)
        paused = await count_wakeups(pod, seconds)
        await connection.close()
    finally:
        pod.remove()
    return running, paused, share


def _processor_seconds(pod: LauncherPod) -> float:
    """Return QEMU's user and system time since its start."""
    (pid,) = pod.pids("qemu-system-x86_64")
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _report(report: Report, name: str, wakeups: Wakeups, more: dict[str, Any]) -> None:
    report(
        {
            "name": name,
            "value": round(wakeups.per_second, 2),
            "unit": "wakes of a thread a second",
            "seconds": round(wakeups.seconds, 1),
            "by_thread": sorted(
                ([thread, count] for thread, count in wakeups.by_thread.items()), key=lambda row: -row[1]
            ),
            **more,
        }
    )
