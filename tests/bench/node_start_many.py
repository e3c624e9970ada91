# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node-start-20: twenty VMs within two seconds on one real node; from each POST to Running, and what each costs.

Once with a disk from an image, with a guest that boots, and once with an empty disk, whose guest is a firmware that
finds nothing: the first is what people do, the second what the node itself can. Processor time is the whole machine's.

NODE_START_VMS: how many.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab import Lab
from tests.bench.seats import VMIS, VMS, a_resting_vm, phase_of
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

MANY, APART_SECONDS, LIMIT_SECONDS = 20, 0.1, 300
MEDIAN_SECONDS_AT_MOST, CPU_SECONDS_AT_MOST = 9.0, 1.4
_TICKS = os.sysconf("SC_CLK_TCK")

Object = dict[str, Any]
Report = Callable[[Object], None]


def run(report: Report) -> None:
    """Measure on a cluster made for it; AssertionError when a bar does not hold, after everything was reported."""
    many = int(os.environ.get("NODE_START_VMS") or MANY)
    with deployed("bench") as cluster:
        _start(cluster, "warm", lambda name: a_vm(name, namespace="warm"), 1)
        plain = _start(cluster, "plain", lambda name: a_resting_vm(name, "plain", runStrategy="Always"), many)
        booted = _start(cluster, "booted", lambda name: a_vm(name, namespace="booted"), many)
    failures = []
    for name, (taken, cpu) in (("node-start-20-empty", plain), ("node-start-20", booted)):
        report(
            {
                "name": name,
                "value": round(statistics.median(taken), 2),
                "unit": "s (median of POST to Running)",
                "first": round(min(taken), 2),
                "last": round(max(taken), 2),
                "vms": many,
                "cpu_seconds_each": round(cpu / many, 2),
            }
        )
    if (median := statistics.median(plain[0])) > MEDIAN_SECONDS_AT_MOST:
        failures.append(f"node-start-20-empty is {median:.1f} s, at most {MEDIAN_SECONDS_AT_MOST}")
    if (each := plain[1] / many) > CPU_SECONDS_AT_MOST:
        failures.append(f"each takes {each:.2f} CPU-s, at most {CPU_SECONDS_AT_MOST}")
    if failures:
        raise AssertionError("; ".join(failures))


def _start(cluster: Cluster, namespace: str, make: Callable[[str], Object], many: int) -> tuple[list[float], float]:
    """Start them one after the other; return the seconds that each took, and the processor seconds of all."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    path, sent = VMIS.format(namespace=namespace), dict[str, float]()
    listed = Lab(cluster.name).api().get(path)
    assert listed is not None
    version, before = listed["metadata"]["resourceVersion"], _busy_seconds()
    creating = threading.Thread(target=_create, args=(cluster, namespace, make, many, sent))
    creating.start()
    ran: dict[str, float] = {}
    for event in Lab(cluster.name).api().watch(path, resource_version=version, seconds=LIMIT_SECONDS):
        name = event["object"]["metadata"].get("name", "")
        if name not in ran and phase_of(event["object"]) == "Running":
            ran[name] = time.monotonic()
        if len(ran) == many:
            break
    spent = _busy_seconds() - before
    creating.join()
    cluster.kubectl("delete", "vm", "--all", "-n", namespace)
    cluster.eventually(lambda: not cluster.list("pods", "-n", namespace), seconds=120, what="no launcher is left")
    if len(ran) < many:
        raise AssertionError(f"{len(ran)} of {many} ran within {LIMIT_SECONDS} s")
    return [ran[name] - sent[name] for name in ran], spent


def _create(cluster: Cluster, namespace: str, make: Callable[[str], Object], many: int, sent: dict[str, float]) -> None:
    api, began = Lab(cluster.name).api(), time.monotonic()
    for number in range(many):
        time.sleep(max(0.0, began + number * APART_SECONDS - time.monotonic()))
        name = f"vm-{number}"
        sent[name] = time.monotonic()
        api.create(VMS.format(namespace=namespace), make(name))


def _busy_seconds() -> float:
    """Return processor seconds that the machine has spent on anything since it came up."""
    user, nice, system, _idle, _iowait, irq, softirq, *_rest = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / _TICKS
