# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose kubelets have another root directory, as k0s and MicroK8s make them: machines run there, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab import Lab
from lab.cluster.node import Node
from lab.machines.machine import Program
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

ROOT = "/var/lib/k0s/kubelet"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A lab whose kubelets are started otherwise; the programs of a lab are described in this process."""
    kubelet, binds = Node.kubelet, Node.binds

    def elsewhere(node: Node) -> Program:
        program = kubelet(node)
        return replace(program, argv=[*program.argv, f"--root-dir={ROOT}"])

    def also_there(node: Node) -> list[tuple[Path, str]]:
        return [*binds(node), (node.paths.root / "kubelet-root", ROOT)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "kubelet", elsewhere)
        patch.setattr(Node, "binds", also_there)
        with deployed("kubelet-root", control_plane_kubelet_root=ROOT) as made:
            yield made


def test_a_machine_runs_where_kubelets_keep_their_pods_elsewhere(cluster: Cluster) -> None:
    cluster.apply(a_vm("elsewhere"))
    cluster.running("elsewhere")
    launcher = cluster.launcher("elsewhere")["metadata"]["uid"]
    node = Lab(cluster.name).node(cluster.nodes[0])
    assert node.run(["ls", f"{ROOT}/pods/{launcher}/volumes/kubernetes.io~empty-dir"]).stdout.split()
    assert node.run(["find", "/var/lib/kubelet", "-name", launcher]).stdout == ""
