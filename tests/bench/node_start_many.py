# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node-start-20: twenty VMs within two seconds on one real node; from each POST to Running, and the cost of each.

Once with a disk from an image and a guest that boots, as users have it; once with an empty disk and only a firmware,
which shows the limit of the node. The lower bound is measured before, in the same run: twenty bare Pods of the
launcher's shape. Before all, one VM alone, beside a bare Pod as in node-start: parallelism must not slow down a single
start.

CPU time is that of the lab, without other load of the machine: Kubernetes, our components, QEMU. What guests run on
their virtual CPUs is reported by itself: a boot is no part of a start, but it takes the processor from other starts.

NODE_START_VMS: the number of VMs.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab import Lab
from tests.bench.lab_cpu import CpuTime, read_cpu_time
from tests.bench.node_start import PODS, RATIO_AT_MOST, bare_pod, has_started, is_running, timed
from tests.bench.seats import VMIS, VMS, a_resting_vm
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

MANY, ALONE, APART_SECONDS, LIMIT_SECONDS = 20, 5, 0.1, 300
QUIET_SECONDS = 5.0
"""Pause before each twenty, so that the end of others is not counted."""
MANY_RATIO_AT_MOST, CPU_SECONDS_AT_MOST = 1.6, 1.1
REPORTED_CPU_SECONDS = 0.01
"""Programs that take less for each start are not listed."""

Object = dict[str, Any]
Report = Callable[[Object], None]
Make = Callable[[str], Object]


@dataclass(frozen=True, slots=True)
class Kind:
    """Objects to create, and how to see that one runs."""

    namespace: str
    create: str
    watch: str
    make: Make
    is_done: Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Started:
    """The seconds of each, and the CPU time of all."""

    seconds: list[float]
    cpu: CpuTime

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def cpu_each(self) -> float:
        """CPU seconds of each, without what its guest ran."""
        return (self.cpu.total - self.cpu.guests) / len(self.seconds)


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when a limit is exceeded."""
    many = int(os.environ.get("NODE_START_VMS") or MANY)
    with deployed("bench") as cluster:
        ratio = _alone(cluster, report)
        pods = _start(cluster, Kind("pods", PODS, PODS, _a_small_pod, has_started), many)
        empty = _start(cluster, Kind("plain", VMS, VMIS, _an_empty_vm, is_running), many)
        booted = _start(cluster, Kind("booted", VMS, VMIS, _a_booting_vm, is_running), many)
    _report_many(report, "node-start-20-pods", pods, pods)
    _report_many(report, "node-start-20-empty", empty, pods)
    _report_many(report, "node-start-20", booted, pods)
    slower = booted.median / pods.median
    failures = {
        f"node-start-20 takes {slower:.2f} times as long as bare Pods, at most {MANY_RATIO_AT_MOST}": slower
        > MANY_RATIO_AT_MOST,
        **{
            f"{name}: each takes {started.cpu_each:.2f} CPU-s, at most {CPU_SECONDS_AT_MOST}": started.cpu_each
            > CPU_SECONDS_AT_MOST
            for name, started in (("node-start-20-empty", empty), ("node-start-20", booted))
        },
        f"one alone takes {ratio:.2f} times as long as a bare Pod, at most {RATIO_AT_MOST}": ratio > RATIO_AT_MOST,
    }
    if any(failures.values()):
        raise AssertionError("; ".join(text for text, is_so in failures.items() if is_so))


def _a_small_pod(name: str) -> Object:
    """Return a bare Pod whose requests are those of the VMs."""
    pod = bare_pod(name, "pods")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5m"}}
    return pod


def _an_empty_vm(name: str) -> Object:
    return a_resting_vm(name, "plain", runStrategy="Always")


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


def _report_many(report: Report, name: str, started: Started, floor: Started) -> None:
    many = len(started.seconds)
    by_program = {
        program: each
        for program, seconds in started.cpu.programs.most_common()
        if (each := seconds / many) > REPORTED_CPU_SECONDS
    }
    report(
        {
            "name": name,
            "value": round(started.median, 2),
            "unit": "s (median of POST to running)",
            "first": round(min(started.seconds), 2),
            "last": round(max(started.seconds), 2),
            "count": many,
            "peer": round(floor.median, 2),
            "peer_is": "bare Pods of the launcher's shape, as many, same run",
            "ratio": round(started.median / floor.median, 2),
            "target": MANY_RATIO_AT_MOST,
            "cpu_seconds_each": round(started.cpu_each, 2),
            "cpu_seconds_target": CPU_SECONDS_AT_MOST,
            "guest_cpu_seconds_each": round(started.cpu.guests / many, 2),
            "cpu_seconds_each_by_program": {program: round(each, 3) for program, each in by_program.items()},
        }
    )


def _start(cluster: Cluster, kind: Kind, many: int) -> Started:
    """Start them one after the other, then delete them."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kind.namespace}})
    create, path = (path.format(namespace=kind.namespace) for path in (kind.create, kind.watch))
    listed = Lab(cluster.name).api().get(path)
    assert listed is not None
    time.sleep(QUIET_SECONDS)
    version, before, sent = listed["metadata"]["resourceVersion"], read_cpu_time(cluster.name), dict[str, float]()
    creating = threading.Thread(target=_create, args=(cluster, create, kind.make, many, sent))
    creating.start()
    ran: dict[str, float] = {}
    for event in Lab(cluster.name).api().watch(path, resource_version=version, seconds=LIMIT_SECONDS):
        name = event["object"]["metadata"].get("name", "")
        if name not in ran and kind.is_done(event["object"]):
            ran[name] = time.monotonic()
        if len(ran) == many:
            break
    spent = read_cpu_time(cluster.name).since(before)
    creating.join()
    cluster.kubectl("delete", "pod" if create == path else "vm", "--all", "-n", kind.namespace)
    cluster.eventually(lambda: not cluster.list("pods", "-n", kind.namespace), what="no Pod is left")
    if len(ran) < many:
        raise AssertionError(f"{len(ran)} of {many} ran within {LIMIT_SECONDS} s")
    return Started([ran[name] - sent[name] for name in ran], spent)


def _create(cluster: Cluster, path: str, make: Make, many: int, sent: dict[str, float]) -> None:
    api, began = Lab(cluster.name).api(), time.monotonic()
    for number in range(many):
        time.sleep(max(0.0, began + number * APART_SECONDS - time.monotonic()))
        name = f"vm-{number}"
        sent[name] = time.monotonic()
        api.create(path, make(name))
