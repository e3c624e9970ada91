# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""node-start-1 and cp-calls: one VM on a real node, from the user's POST to Running, and what its life costs in writes.

The floor of node-start-1 is measured in the same run, in alternation: a Pod of the launcher's shape (same image,
volumes, restricted) with nothing of ours in it, from POST to its container's start. What a start takes beyond it is
libvirt, QEMU and us. The peer of cp-calls is a figure, not a run: upstream's components come only from a registry.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.audit import writes
from tests.e2e.cluster import Cluster
from tests.e2e.machines import GUEST, a_vm

ROUNDS = 10
LAUNCHER = "localhost/virtops/virt-launcher:0.1.0"
UPSTREAM_WRITES = 22
"""Writes by KubeVirt 1.9's components for one start, counted from its sources: 20 to 25."""

Report = Callable[[dict[str, Any]], None]


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


@contextmanager
def watching(cluster: Cluster, kind: str, namespace: str) -> Iterator[subprocess.Popen[str]]:
    """Watch a kind in a namespace; the watch stands when the block begins."""
    command = [*cluster.program, "get", kind, "-n", namespace, "--watch", "--output-watch-events", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        time.sleep(0.5)  # kubectl says nothing while there is nothing to list
        try:
            yield process
        finally:
            process.kill()


def objects(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a watch as they come; kubectl prints each over many lines."""
    decoder, text = json.JSONDecoder(), ""
    assert process.stdout is not None
    for line in process.stdout:
        text += line
        if line.rstrip() == "}":
            event, _unused = decoder.raw_decode(text.lstrip())
            text = ""
            yield event["object"]


def timed(cluster: Cluster, kind: str, obj: dict[str, Any], done: Callable[[dict[str, Any]], bool]) -> float:
    """Create an object; return the seconds from the send until an object of the kind is as wanted."""
    with watching(cluster, kind, obj["metadata"]["namespace"]) as process:
        sent = time.monotonic()
        with subprocess.Popen(
            [*cluster.program, "create", "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as creator:
            creator.communicate(json.dumps(obj))
        for seen in objects(process):
            if done(seen):
                return time.monotonic() - sent
    raise AssertionError(f"the watch of {kind} ended")


def is_running(vmi: dict[str, Any]) -> bool:
    """Say whether a VMI runs."""
    return vmi.get("status", {}).get("phase") == "Running"


def has_started(pod: dict[str, Any]) -> bool:
    """Say whether a Pod's container has started."""
    return any("running" in one.get("state", {}) for one in pod.get("status", {}).get("containerStatuses") or ())


def run(cluster: Cluster, report: Report) -> None:
    """Measure both in alternation and report them."""
    starts, floors = [], []
    for number in range(ROUNDS + 1):
        namespace = f"bench-{number}"
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        floors.append(timed(cluster, "pods", bare_pod("bare", namespace), has_started))
        starts.append(timed(cluster, "vmi", a_vm("one", namespace=namespace), is_running))
        cluster.wait("vm", "one", ".status.ready", "true", namespace=namespace)
        cluster.kubectl("delete", "vm", "one", "-n", namespace)
        cluster.wait_gone("vmi", "one", namespace=namespace)
    start, floor = statistics.median(starts[1:]), statistics.median(floors[1:])  # the first of each warms up
    report(
        {
            "name": "node-start-1",
            "value": round(start, 3),
            "unit": "s",
            "min": round(min(starts[1:]), 3),
            "max": round(max(starts[1:]), 3),
            "rounds": ROUNDS,
            "peer": round(floor, 3),
            "peer_is": "a bare Pod of the launcher's shape, same run",
            "ratio": round(start / floor, 2),
        }
    )
    lives = [writes(cluster.audit_log, f"bench-{number}").total() for number in range(1, ROUNDS + 1)]
    calls = statistics.median(lives)
    report(
        {
            "name": "cp-calls",
            "value": calls,
            "unit": "writes per VM, whole life",
            "peer": UPSTREAM_WRITES,
            "peer_is": "KubeVirt 1.9, one start, counted from its sources",
            "ratio": round(calls / UPSTREAM_WRITES, 2),
        }
    )
