# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-evacuate-10: `kubectl drain` of a node with ten guests, until the last has left.

Beside it in the same run: a bare Pod and libvirt's own migration of one such guest, ten times, as a sequence would
take. The guests are idle: ten busy ones would measure the scheduling of CPUs. kubectl polls every five seconds, so its
time may be too long by that much.

MIG_EVACUATE_VMS: the number of VMs.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

from tests.bench.moves import a_bare_pod, floor_of
from tests.bench.node_start import Report
from tests.bench.ticks import RESTING
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

MANY, FLOOR_ROUNDS, LIMIT_SECONDS = 10, 3, 600
RATIO_AT_MOST = 2.2


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when the limit is exceeded."""
    with deployed("bench", nodes=2) as cluster:
        measure(cluster, report)


def measure(cluster: Cluster, report: Report) -> None:
    """Start guests on one node, and drain it."""
    many = int(os.environ.get("MIG_EVACUATE_VMS") or MANY)
    names = [f"evacuee-{number}" for number in range(many)]
    leaves, stays = cluster.nodes
    cluster.kubectl("cordon", stays)
    cluster.apply(*(_an_evacuee(name) for name in names))
    for name in names:
        cluster.running(name, seconds=LIMIT_SECONDS)
    cluster.kubectl("uncordon", stays)
    with floor_of(cluster, names[0]) as floor:
        call = statistics.median(floor.move().total for _unused in range(FLOOR_ROUNDS))
    pod = statistics.median(a_bare_pod(cluster, f"bare-{number}") for number in range(FLOOR_ROUNDS))
    began = time.monotonic()
    cluster.kubectl(
        *("drain", leaves, "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={LIMIT_SECONDS}s"),
        "--pod-selector=kubevirt.io=virt-launcher",
    )
    seconds = time.monotonic() - began
    vmis = [cluster.get("vmi", name) or {} for name in names]
    moved = sum(vmi.get("status", {}).get("nodeName") == stays for vmi in vmis)
    cluster.kubectl("uncordon", leaves)
    cluster.kubectl("delete", "vm", *names)
    _report(report, seconds, call, pod, many)
    if moved != many:
        raise AssertionError(f"{moved} of {many} have moved")


def _an_evacuee(name: str) -> dict[str, Any]:
    vm = a_vm(name, user_data=RESTING)
    spec = vm["spec"]["template"]["spec"]
    spec["evictionStrategy"] = "LiveMigrate"
    spec["domain"]["resources"] = {"requests": {"cpu": "5m"}}
    return vm


def _report(report: Report, seconds: float, call: float, pod: float, many: int) -> None:
    ratio = seconds / (many * (call + pod))
    report(
        {
            "name": "mig-evacuate-10",
            "value": round(seconds, 1),
            "unit": "s (kubectl drain)",
            "each": round(seconds / many, 2),
            "peer": round(many * (call + pod), 1),
            "peer_is": "a bare Pod and libvirt's call for one such guest, so many times, same run",
            "vms": many,
            "ratio": round(ratio, 2),
            "target": RATIO_AT_MOST,
            "ratio_to_calls_alone": round(seconds / (many * call), 2),
        }
    )
    if ratio > RATIO_AT_MOST:
        raise AssertionError(f"it takes {ratio:.2f} times as long as so many Pods and calls")
