# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade of the control plane with running guests: they are counted, and updated by the configured methods."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest

from lab import Lab
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import archives, upgrade
from tests.e2e.machines import Manifest, a_vm
from tests.e2e.node_images import build_anew

pytestmark = pytest.mark.lab

NEXT = "localhost/virtops/{}:next"
MOVERS, STAYER = ("mover-1", "mover-2"), "stayer"
ALL = (*MOVERS, STAYER)
LABEL = "kubevirt.io/outdatedLauncherImage"
COUNT = "outdatedVirtualMachineInstanceWorkloads"
METRIC = re.compile(r"^kubevirt_vmi_number_of_outdated (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def upgradable(nodes: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two nodes with the images of two versions, and no method. Later modules run the other version."""
    images, lab = archives(), Lab(nodes.name)
    next_launcher = build_anew(images["virt-launcher"], tmp_path_factory.mktemp("anew"), NEXT.format("virt-launcher"))
    configure(nodes, workloadUpdateStrategy=None)
    nodes.apply(a_claim(), a_stayer(), *map(a_mover, MOVERS))
    lab.import_image(next_launcher)
    lab.import_image(images["control-plane"], reference=NEXT.format("control-plane"))
    return nodes


def a_mover(name: str) -> Manifest:
    vm = a_vm(name)
    vm["spec"]["template"]["spec"]["evictionStrategy"] = "LiveMigrate"
    return vm


def a_claim() -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": STAYER, "namespace": "default"}, "spec": spec}


def a_stayer() -> Manifest:
    """A machine that cannot migrate: its disk is on one node."""
    vm = a_vm(STAYER)
    spec = vm["spec"]["template"]["spec"]
    spec["domain"]["devices"]["disks"].append({"name": "own", "disk": {"bus": "virtio"}})
    spec["volumes"].append({"name": "own", "persistentVolumeClaim": {"claimName": STAYER}})
    return vm


def configure(cluster: Cluster, **spec: Any) -> None:
    """Write into the KubeVirt object, as a user does."""
    cluster.kubectl("patch", "kubevirt", "kubevirt", "-n", "kubevirt", "--type=merge", "-p", json.dumps({"spec": spec}))


def outdated(cluster: Cluster) -> int:
    """Return the number of outdated instances, once all three places report the same."""
    kubevirt = cluster.get("kubevirt", "kubevirt", "kubevirt") or {}
    counted = kubevirt.get("status", {}).get(COUNT, -1)
    labelled = len(cluster.list("vmi", "-n", "default", "-l", LABEL))
    shown = 0.0
    for pod in cluster.list("pods", "-n", "kubevirt", "-l", "kubevirt.io=virt-controller"):
        path = f"/api/v1/namespaces/kubevirt/pods/https:{pod['metadata']['name']}:8443/proxy/metrics"
        shown += sum(map(float, METRIC.findall(cluster.kubectl("get", "--raw", path))))
    return counted if counted == labelled == shown else -1


def launchers(cluster: Cluster) -> dict[str, str]:
    return {name: cluster.launcher(name)["metadata"]["name"] for name in ALL}


def image_of(cluster: Cluster, name: str) -> str:
    (compute,) = (
        container for container in cluster.launcher(name)["spec"]["containers"] if container["name"] == "compute"
    )
    image: str = compute["image"]
    return image


def counts_on(cluster: Cluster, pod: str, before: int) -> bool:
    return cluster.counter(pod) > before


def ended_at(migration: dict[str, Any]) -> str:
    (last,) = (
        timestamp for timestamp in migration["status"]["phaseTransitionTimestamps"] if timestamp["phase"] == "Succeeded"
    )
    time: str = last["phaseTransitionTimestamp"]
    return time


@pytest.mark.nightly
def test_guests_move_to_the_new_launcher_by_the_configured_methods(upgradable: Cluster) -> None:
    nodes = upgradable
    before = {name: nodes.running(name)["metadata"]["uid"] for name in ALL}
    first = launchers(nodes)
    for name in MOVERS:
        nodes.eventually(partial(counts_on, nodes, first[name], 0), what=f"{name} counts")
    configure(nodes, configuration={"migrations": {"parallelMigrationsPerCluster": 1}})

    # Without a method they are counted, and stay.
    upgrade(nodes, control_plane_image_tag="next")
    nodes.eventually(lambda: outdated(nodes) == len(ALL), what="all are outdated")
    assert launchers(nodes) == first
    assert nodes.list("vmim", "-n", "default") == []

    # Those that can migrate do, one by one, as the same guests.
    counted = {name: nodes.counter(first[name]) for name in MOVERS}
    configure(nodes, workloadUpdateStrategy={"workloadUpdateMethods": ["LiveMigrate"]})
    nodes.eventually(lambda: outdated(nodes) == 1, what="one is outdated")
    after = launchers(nodes)
    for name in MOVERS:
        assert nodes.running(name)["metadata"]["uid"] == before[name]
        assert image_of(nodes, name) == NEXT.format("virt-launcher")
        nodes.eventually(partial(counts_on, nodes, after[name], counted[name]), what=f"{name} counts on")
    earlier, later = sorted(
        nodes.list("vmim", "-n", "default"), key=lambda migration: migration["metadata"]["creationTimestamp"]
    )
    assert ended_at(earlier) <= later["metadata"]["creationTimestamp"]
    assert after[STAYER] == first[STAYER]

    # With Evict, the others are stopped and start again.
    configure(nodes, workloadUpdateStrategy={"workloadUpdateMethods": ["LiveMigrate", "Evict"]})
    nodes.another(STAYER, before[STAYER])
    last = nodes.running(STAYER)["metadata"]["uid"]
    nodes.eventually(lambda: outdated(nodes) == 0, what="none is outdated")
    assert image_of(nodes, STAYER) == NEXT.format("virt-launcher")
    assert nodes.emulators() == sorted([last, *(before[name] for name in MOVERS)])
    assert [launchers(nodes)[name] for name in MOVERS] == [after[name] for name in MOVERS]
