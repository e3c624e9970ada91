# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node-start-1 and cp-calls: one VM on a real node, from the user's POST to Running, and the number of writes of its
run.

The lower bound of node-start-1 is measured in the same run, alternating: a Pod of the launcher's shape (same image,
volumes, restricted) without our programs, from POST to the start of its container. The rest of a start is libvirt, QEMU
and us. The peer of cp-calls is a constant and not measured: upstream's components come only from a registry.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from lab import Lab
from tests.bench.seats import VMIS, VMS, phase_of
from tests.e2e.audit import writes
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import GUEST, a_vm

ROUNDS = 10
LAUNCHER = "localhost/virtops/virt-launcher:0.1.0"
RATIO_AT_MOST, WRITES_AT_MOST = 1.5, 11
UPSTREAM_WRITES = 22
"""Writes by KubeVirt 1.9's components for one start, counted from its sources: 20 to 25."""

PODS = "/api/v1/namespaces/{namespace}/pods"

Object = dict[str, Any]
Report = Callable[[Object], None]


def bare_pod(name: str, namespace: str) -> dict[str, Any]:
    """Return a Pod that has the launcher's shape and sleeps."""
    compute = {
        "name": "compute",
        "image": LAUNCHER,
        "command": ["/usr/bin/python3", "-c", "import time; time.sleep(3600)"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "run", "mountPath": "/run/launcher"},
            {"name": "disk", "mountPath": "/img/volumes/root"},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsUser": 107,
                "runAsGroup": 107,
                "fsGroup": 107,
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [compute],
            "volumes": [
                {"name": "run", "emptyDir": {}},
                {"name": "disk", "image": {"reference": GUEST, "pullPolicy": "IfNotPresent"}},
            ],
        },
    }


def timed(cluster: Cluster, paths: tuple[str, str], obj: Object, done: Callable[[Object], bool]) -> float:
    """Create an object at the first path; return the seconds until the object at the second path is as wanted."""
    api = Lab(cluster.name).api()
    create, watch = (path.format(namespace=obj["metadata"]["namespace"]) for path in paths)
    listed = api.get(watch)
    assert listed is not None
    sent = time.monotonic()
    api.create(create, obj)
    for event in api.watch(watch, resource_version=listed["metadata"]["resourceVersion"]):
        if done(event["object"]):
            return time.monotonic() - sent
    raise AssertionError(f"the watch of {watch} ended")


def is_running(vmi: dict[str, Any]) -> bool:
    """Whether a VMI runs."""
    return phase_of(vmi) == "Running"


def has_started(pod: dict[str, Any]) -> bool:
    """Whether the container of a Pod has started."""
    return any("running" in status.get("state", {}) for status in pod.get("status", {}).get("containerStatuses") or ())


def run(report: Report) -> None:
    """Measure both, alternating, on its own cluster. Raises AssertionError after the last report when a limit is
    exceeded.
    """
    with deployed("bench") as cluster:
        starts, floors, calls = _measure(cluster)
        life_writes = [writes(cluster.audit_log, f"bench-{number}").total() for number in range(1, ROUNDS + 1)]
    failures = [*_report_start(report, starts, floors), *_report_writes(report, calls, life_writes)]
    if failures:
        raise AssertionError("; ".join(failures))


def _measure(cluster: Cluster) -> tuple[list[float], list[float], list[int]]:
    """Return the seconds of each start and of each bare Pod, and the writes of each start, without the first
    (warm-up).
    """
    starts, floors, calls = [], [], []
    for number in range(ROUNDS + 1):
        namespace = f"bench-{number}"
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        floors.append(timed(cluster, (PODS, PODS), bare_pod("bare", namespace), has_started))
        starts.append(timed(cluster, (VMS, VMIS), a_vm("one", namespace=namespace), is_running))
        cluster.wait("vm", "one", ".status.ready", "true", namespace=namespace)
        calls.append(writes(cluster.audit_log, namespace).total())
        cluster.kubectl("delete", "vm", "one", "-n", namespace)
        cluster.wait_gone("vmi", "one", namespace=namespace)
    return starts[1:], floors[1:], calls[1:]


def _report_start(report: Report, starts: list[float], floors: list[float]) -> list[str]:
    start, floor = statistics.median(starts), statistics.median(floors)
    ratio = start / floor
    report(
        {
            "name": "node-start-1",
            "value": round(start, 3),
            "unit": "s",
            "min": round(min(starts), 3),
            "max": round(max(starts), 3),
            "rounds": ROUNDS,
            "peer": round(floor, 3),
            "peer_is": "a bare Pod of the launcher's shape, same run",
            "ratio": round(ratio, 2),
            "target": RATIO_AT_MOST,
        }
    )
    return [f"a start takes {ratio:.2f} times as long as a bare Pod"] if ratio > RATIO_AT_MOST else []


def _report_writes(report: Report, calls: list[int], life_writes: list[int]) -> list[str]:
    of_a_start = statistics.median(calls)
    report(
        {
            "name": "cp-calls",
            "value": of_a_start,
            "unit": "writes per VM start",
            "whole_life": statistics.median(life_writes),
            "peer": UPSTREAM_WRITES,
            "peer_is": "KubeVirt 1.9, one start, counted from its sources",
            "ratio": round(of_a_start / UPSTREAM_WRITES, 2),
            "target": WRITES_AT_MOST,
        }
    )
    return [f"{of_a_start:g} writes per start"] if of_a_start > WRITES_AT_MOST else []
