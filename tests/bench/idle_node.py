# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""idle-node: a hundred idle VMs on a real node; the CPU time of our components.

Guests are paused once they run, so that a hundred of them leave the machine to other work. The CPU time is that of our
processes without launchers, as the kernel counts it: other load is not in it.

IDLE_NODE_VMS: the number of VMs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from tests.bench.footprint import GUARDED, Footprint, footprints
from tests.bench.seats import Seats, a_resting_vm
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed

VMS, BATCH = 100, 10
QUIET_SECONDS, MEASURED_SECONDS = 60.0, 60.0
PERCENT_AT_MOST, MIB_AT_MOST = 2.0, 90.0
NAMESPACE = "idle-node"

Report = Callable[[dict[str, Any]], None]


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when a limit is exceeded."""
    vms = int(os.environ.get("IDLE_NODE_VMS") or VMS)
    with deployed("soak") as cluster:
        _fill(cluster, vms)
        time.sleep(QUIET_SECONDS)  # the work after a start is done
        before, began = _look(cluster), time.monotonic()
        time.sleep(MEASURED_SECONDS)
        after, seconds = _look(cluster), time.monotonic() - began
    failures = [*_report_processor(report, before, after, (vms, seconds)), *_report_memory(report, after, vms)]
    if failures:
        raise AssertionError("; ".join(failures))


def _fill(cluster: Cluster, vms: int) -> None:
    """Start the VMs a few at a time, and pause each guest."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    seats = Seats(cluster, NAMESPACE)
    names = [f"vm-{number}" for number in range(vms)]
    for first in range(0, vms, BATCH):
        batch = names[first : first + BATCH]
        cluster.apply(*(a_resting_vm(name, NAMESPACE, runStrategy="Always") for name in batch))
        seats.wait_running(first + len(batch))
        for name in batch:
            seats.pause(name)


def _look(cluster: Cluster) -> dict[tuple[str, int], Footprint]:
    return {(footprint.part, footprint.pid): footprint for footprint in footprints(cluster, cluster.nodes[0])}


def _report_processor(
    report: Report,
    before: dict[tuple[str, int], Footprint],
    after: dict[tuple[str, int], Footprint],
    over: tuple[int, float],
) -> list[str]:
    if before.keys() != after.keys():
        return [f"processes came or went: {sorted(before.keys() ^ after.keys())}"]
    vms, seconds = over
    spent = {
        process: (after[process].processor_seconds - footprint.processor_seconds) / seconds
        for process, footprint in before.items()
    }
    percent = sum(spent.values()) * 100
    report(
        {
            "name": "idle-node-processor",
            "value": round(percent, 2),
            "unit": "% of a core",
            "vms": vms,
            "seconds": round(seconds, 1),
            "by_process": [[part, round(share * 100, 2)] for (part, _unused), share in spent.items()],
            "target": PERCENT_AT_MOST,
        }
    )
    return [f"{percent:.2f} % of a core"] if percent > PERCENT_AT_MOST else []


def _report_memory(report: Report, after: dict[tuple[str, int], Footprint], vms: int) -> list[str]:
    mib = {part: footprint.pss_kib / 1024 for (part, _unused), footprint in after.items() if part in GUARDED}
    total = sum(mib.values())
    report(
        {
            "name": "idle-node-memory",
            "value": round(total, 1),
            "unit": "MiB PSS, virt-handler and virt-node",
            "vms": vms,
            "by_process": [[part, round(size, 1)] for part, size in mib.items()],
            "others": [
                [part, round(footprint.pss_kib / 1024, 1)]
                for (part, _unused), footprint in after.items()
                if part not in mib
            ],
            "target": MIB_AT_MOST,
        }
    )
    return [f"{total:.1f} MiB"] if total > MIB_AT_MOST else []
