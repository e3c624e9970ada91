# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster like k0s, whose kubelets have another root directory: machines run there too."""

from __future__ import annotations

import pytest

from lab import Lab
from lab.cluster.distributions import DISTRIBUTIONS
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import upgrade
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

KUBELET_ROOT = DISTRIBUTIONS["k0s"].kubelet_root


@pytest.mark.nightly
def test_a_machine_runs_with_another_kubelet_root_directory(kubelets_elsewhere: Cluster) -> None:
    cluster = kubelets_elsewhere
    cluster.apply(a_vm("elsewhere"))
    node = Lab(cluster.name).node(cluster.running("elsewhere")["status"]["nodeName"])
    launcher = cluster.launcher("elsewhere")["metadata"]["uid"]
    assert node.run(["ls", f"{KUBELET_ROOT}/pods/{launcher}/volumes/kubernetes.io~empty-dir"]).stdout.split()
    assert node.run(["find", "/var/lib/kubelet", "-name", launcher]).stdout == ""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("prepare", "reported"),
    [
        pytest.param("rm -rf", "hostPath type check failed: .* control_plane_kubelet_root", id="missing"),
        pytest.param("mkdir -p", f"Set control_plane_kubelet_root to {KUBELET_ROOT}", id="of no kubelet"),
    ],
)
def test_another_root_than_the_kubelets_is_reported(kubelets_elsewhere: Cluster, prepare: str, reported: str) -> None:
    cluster = kubelets_elsewhere
    for node in Lab(cluster.name).nodes():
        node.run(["sh", "-c", f"{prepare} /var/lib/kubelet/pods"])
    try:
        with pytest.raises(AssertionError, match=reported):
            upgrade(cluster, control_plane_wait_timeout=120)
    finally:
        upgrade(cluster, control_plane_kubelet_root=KUBELET_ROOT)
