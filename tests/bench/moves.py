# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-idle: an almost idle guest moves to another node; mig-busy: one that keeps writing 16 MiB of its memory.

Migrations on a real cluster of two nodes beside bare ones of the same guest, alternating: duration and downtime.

There are two lower bounds: libvirt's own migration between two waiting launchers, and the same after the start of a
bare Pod of the launcher's shape, because a migration in Kubernetes begins with one. The machine may be busy: the ratios
say more than the seconds.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from controlplane.api.launch_plan import PLAN_ANNOTATION, parse_plan
from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.quantity import to_milli
from lab import Lab
from lab.machines.cgroup import machine_group
from tests.bench.bare_migration import SERIAL_LOG, TICKS, Bare, Moved, Place, downtime_of
from tests.bench.node_start import PODS, Report, bare_pod, has_started, timed
from tests.bench.seats import Object, libvirt_of, run_directory
from tests.bench.ticks import BUSY, IDLE, Ticks
from tests.controlplane.virt_launcher.launcher_pod import built_images
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

MIGRATIONS = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstancemigrations"
NAME, NAMESPACE = "mover", "default"
ROUNDS = 5
RATIO_AT_MOST = {"mig-idle": 1.2, "mig-busy": 2.5}
"""Of a migration, to a bare Pod and libvirt's call."""
DOWNTIME_AT_MOST = 1.3
"""Of the downtime, to that of libvirt's call."""


def run_idle(report: Report) -> None:
    """Measure mig-idle on its own cluster."""
    with deployed("bench", nodes=2) as cluster:
        measure(cluster, report, "mig-idle", IDLE)


def run_busy(report: Report) -> None:
    """Measure mig-busy on its own cluster."""
    with deployed("bench", nodes=2) as cluster:
        measure(cluster, report, "mig-busy", BUSY)


def measure(cluster: Cluster, report: Report, name: str, user_data: str, *, rounds: int = ROUNDS) -> None:
    """Move a guest `rounds` times. Raises AssertionError after the last report when a limit is exceeded."""
    cluster.apply(a_vm(NAME, user_data=user_data))
    cluster.running(NAME)
    bare, ours, pods = list[Moved](), list[Moved](), list[float]()
    with floor_of(cluster, NAME) as floor:
        for number in range(rounds):
            bare.append(floor.move())
            pods.append(a_bare_pod(cluster, f"bare-{number}"))
            ours.append(_move(cluster, f"{NAME}-{number}"))
    total = _report_total(report, name, ours, bare, pods)
    downtime = _report_downtime(report, name, ours, bare)
    failures = []
    if total > RATIO_AT_MOST[name]:
        failures.append(f"{name} takes {total:.2f} times as long as a bare Pod and libvirt's call")
    if downtime > DOWNTIME_AT_MOST:
        failures.append(f"{name} stops the guest {downtime:.2f} times as long as libvirt's call")
    if failures:
        raise AssertionError("; ".join(failures))


@contextmanager
def floor_of(cluster: Cluster, name: str) -> Iterator[Bare]:
    """Have the guest of a VM ready for bare migrations inside the block."""
    vmi, pod = cluster.get("vmi", name), cluster.launcher(name)
    assert vmi is not None
    plan = parse_plan(pod["metadata"]["annotations"][PLAN_ANNOTATION].encode())
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        home.chmod(0o755)
        source_node, target_node, *_unused = sorted(cluster.nodes, key=lambda node: node != pod["spec"]["nodeName"])
        source, target = (_as_its_pod(cluster, pod, node) for node in (source_node, target_node))
        floor = Bare(built_images(home / "images"), home, decode_vmi(vmi), plan, source, target)
        floor.warm_up()
        yield floor


def _as_its_pod(cluster: Cluster, pod: Object, node: str) -> Place:
    """Return the control group for a Pod like this one on that node: the kubelet's hierarchy and CPU shares."""
    below = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}[pod["status"]["qosClass"]]
    requests = (
        container.get("resources", {}).get("requests", {}).get("cpu", "0") for container in pod["spec"]["containers"]
    )
    shares = max(sum(to_milli(request) for request in requests) * 1024 // 1000, 2)
    return Place(str(PurePosixPath(machine_group(cluster.name, node), "kubepods", below)), shares)


def a_bare_pod(cluster: Cluster, name: str) -> float:
    """Return the seconds until a Pod of the launcher's shape has started."""
    seconds = timed(cluster, (PODS, PODS), bare_pod(name, NAMESPACE), has_started)
    cluster.kubectl("delete", "pod", name, "-n", NAMESPACE)
    return seconds


def _move(cluster: Cluster, name: str) -> Moved:
    lab, source = Lab(cluster.name), _granted(cluster)
    cluster.eventually(lambda: len(_logs(cluster)) == 1, what="one launcher alone has a console")
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"vmiName": NAME},
    }
    source_log = Path(run_directory(lab, source), SERIAL_LOG)
    with Ticks(lambda: _logs(cluster)) as ticks:
        total = timed(cluster, (MIGRATIONS, MIGRATIONS), body, lambda migration: _is_over(migration, name))
        target = _granted(cluster)
        target_log = Path(run_directory(lab, target), SERIAL_LOG)
        cluster.eventually(lambda: ticks.count(target_log) > TICKS, what="the guest ticks on")
    libvirtd = libvirt_of(lab, target)
    try:
        moved = Moved(total, ticks.gap(source_log, target_log), downtime_of(libvirtd.listAllDomains()[0]))
    finally:
        libvirtd.close()
    cluster.wait_gone("pod", source["metadata"]["name"])
    return moved


def _granted(cluster: Cluster) -> Object:
    """Return the Pod that runs the guest."""
    vmi = cluster.get("vmi", NAME)
    assert vmi is not None
    (uid,) = vmi["status"]["activePods"]
    return next(pod for pod in cluster.list("pods", "-n", NAMESPACE) if pod["metadata"]["uid"] == uid)


def _is_over(migration: Object, name: str) -> bool:
    if migration["metadata"].get("name") != name:
        return False
    phase = migration.get("status", {}).get("phase")
    if phase == "Failed":
        raise AssertionError(f"{name} failed: {migration['status']}")
    return bool(phase == "Succeeded")


def _logs(cluster: Cluster) -> list[Path]:
    """Return the console logs of all launchers on all nodes."""
    lab = Lab(cluster.name)
    roots = [Path(f"/proc/{lab.node(node).running_pid()}/root/var/lib/kubelet/pods") for node in cluster.nodes]
    return [path for root in roots for path in root.glob(f"*/volumes/kubernetes.io~empty-dir/*/{SERIAL_LOG}")]


def _report_total(report: Report, name: str, ours: list[Moved], bare: list[Moved], pods: list[float]) -> float:
    took = [migration.total for migration in ours]
    total, call, pod = (statistics.median(seconds) for seconds in (took, [migration.total for migration in bare], pods))
    ratio = total / (call + pod)
    report(
        {
            "name": name,
            "value": round(total, 2),
            "unit": "s (median of POST to Succeeded)",
            "min": round(min(took), 2),
            "max": round(max(took), 2),
            "rounds": len(took),
            "peer": round(call + pod, 2),
            "peer_is": "a bare Pod of the launcher's shape, and libvirt's call for the same guest, same run",
            "ratio": round(ratio, 2),
            "target": RATIO_AT_MOST[name],
            "call_alone": round(call, 2),
            "ratio_to_call_alone": round(total / call, 2),
        }
    )
    return ratio


def _report_downtime(report: Report, name: str, ours: list[Moved], bare: list[Moved]) -> float:
    """Report the downtime; return its ratio, by the ticks of the guest."""
    figures: dict[str, Any] = {"name": f"{name}-downtime"}
    for measure in ("stood", "by_libvirt"):
        our_median, bare_median = (
            statistics.median(getattr(migration, measure) for migration in migrations) for migrations in (ours, bare)
        )
        figures |= {
            measure: round(our_median * 1e3),
            f"{measure}_bare": round(bare_median * 1e3),
            f"{measure}_ratio": round(our_median / bare_median, 2),
        }
    unit = "ms (medians; stood: between two ticks of the guest, of 20 ms each)"
    report(figures | {"unit": unit, "ratio": figures["stood_ratio"], "target": DOWNTIME_AT_MOST})
    return float(figures["stood_ratio"])
