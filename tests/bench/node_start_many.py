# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node-start-20: twenty VMs within two seconds on one real node; from each POST to Running, and the cost of each.

Once with a disk from an image and a guest that boots, as users have it; once with an empty disk and only a firmware,
which shows the limit of the node. Before both, one VM alone, beside a bare Pod as in node-start: parallelism must not
slow down a single start. CPU time is that of the lab: Kubernetes, our components and the guests, without other load of
the machine.

NODE_START_VMS: the number of VMs.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from lab import Lab
from lab.machines.cgroup import hierarchies, lab_group
from tests.bench.node_start import PODS, bare_pod, has_started, is_running, timed
from tests.bench.seats import VMIS, VMS, a_resting_vm, phase_of
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

MANY, ALONE, APART_SECONDS, LIMIT_SECONDS = 20, 5, 0.1, 300
MEDIAN_SECONDS_AT_MOST, CPU_SECONDS_AT_MOST, RATIO_AT_MOST = 9.0, 1.4, 2.2

Object = dict[str, Any]
Report = Callable[[Object], None]


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when a limit is exceeded."""
    many = int(os.environ.get("NODE_START_VMS") or MANY)
    with deployed("bench") as cluster:
        ratio = _alone(cluster, report)
        plain = _start(cluster, "plain", lambda name: a_resting_vm(name, "plain", runStrategy="Always"), many)
        _report_many(report, "node-start-20-empty", *plain)
        _report_many(report, "node-start-20", *_start(cluster, "booted", _a_booting_vm, many))
    median, cpu_each = statistics.median(plain[0]), plain[1] / many
    failures = {
        f"node-start-20-empty is {median:.1f} s, at most {MEDIAN_SECONDS_AT_MOST}": median > MEDIAN_SECONDS_AT_MOST,
        f"each takes {cpu_each:.2f} CPU-s, at most {CPU_SECONDS_AT_MOST}": cpu_each > CPU_SECONDS_AT_MOST,
        f"one alone takes {ratio:.2f} times as long as a bare Pod, at most {RATIO_AT_MOST}": ratio > RATIO_AT_MOST,
    }
    if any(failures.values()):
        raise AssertionError("; ".join(text for text, is_so in failures.items() if is_so))


def _a_booting_vm(name: str) -> Object:
    """Return a VM with a disk from an image and requests so small that twenty fit on a small node."""
    vm = a_vm(name, namespace="booted")
    vm["spec"]["template"]["spec"]["domain"]["resources"] = {"requests": {"cpu": "5m"}}
    return vm


def _alone(cluster: Cluster, report: Report) -> float:
    """Start one at a time, alternating with a bare Pod; return the ratio of their times."""
    starts, floors = [], []
    for number in range(ALONE + 1):
        namespace = f"alone-{number}"
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        floors.append(timed(cluster, (PODS, PODS), bare_pod("bare", namespace), has_started))
        starts.append(timed(cluster, (VMS, VMIS), a_vm("one", namespace=namespace), is_running))
        cluster.kubectl("delete", "vm/one", "pod/bare", "-n", namespace)
        cluster.wait_gone("vmi", "one", namespace=namespace)
    start, floor = statistics.median(starts[1:]), statistics.median(floors[1:])  # the first of each is the warm-up
    report(
        {
            "name": "node-start-20-alone",
            "value": round(start, 2),
            "unit": "s (median of POST to Running, one at a time)",
            "peer": round(floor, 2),
            "peer_is": "a bare Pod of the launcher's shape, same run",
            "ratio": round(start / floor, 2),
            "target": RATIO_AT_MOST,
        }
    )
    return start / floor


def _report_many(report: Report, name: str, seconds: list[float], cpu: float) -> None:
    report(
        {
            "name": name,
            "value": round(statistics.median(seconds), 2),
            "unit": "s (median of POST to Running)",
            "first": round(min(seconds), 2),
            "last": round(max(seconds), 2),
            "vms": len(seconds),
            "cpu_seconds_each": round(cpu / len(seconds), 2),
        }
    )


def _start(cluster: Cluster, namespace: str, make: Callable[[str], Object], many: int) -> tuple[list[float], float]:
    """Start the VMs one after the other; return the seconds of each, and the CPU seconds of all."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    path, sent = VMIS.format(namespace=namespace), dict[str, float]()
    listed = Lab(cluster.name).api().get(path)
    assert listed is not None
    version, before = listed["metadata"]["resourceVersion"], _used_seconds(cluster.name)
    creating = threading.Thread(target=_create, args=(cluster, namespace, make, many, sent))
    creating.start()
    ran: dict[str, float] = {}
    for event in Lab(cluster.name).api().watch(path, resource_version=version, seconds=LIMIT_SECONDS):
        name = event["object"]["metadata"].get("name", "")
        if name not in ran and phase_of(event["object"]) == "Running":
            ran[name] = time.monotonic()
        if len(ran) == many:
            break
    spent = _used_seconds(cluster.name) - before
    creating.join()
    cluster.kubectl("delete", "vm", "--all", "-n", namespace)
    cluster.eventually(lambda: not cluster.list("pods", "-n", namespace), what="no launcher is left")
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


def _used_seconds(lab: str) -> float:
    """Return the CPU seconds of everything in the lab."""
    for hierarchy in hierarchies():
        group = hierarchy.path / lab_group(lab)
        if "cpuacct" in hierarchy.options:
            return int((group / "cpuacct.usage").read_text()) / 1e9
    unified = next(hierarchy for hierarchy in hierarchies() if hierarchy.unified)
    fields = (unified.path / lab_group(lab) / "cpu.stat").read_text().split()
    return int(fields[fields.index("usage_usec") + 1]) / 1e6
