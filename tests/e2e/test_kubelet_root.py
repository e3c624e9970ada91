# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose kubelets have another root directory, as in k0s and MicroK8s: machines run there too."""

from __future__ import annotations

import pytest

from lab import Lab
from tests.e2e.cluster import Cluster
from tests.e2e.kubelet_root import KUBELET_ROOT
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab


@pytest.mark.nightly
def test_a_machine_runs_with_another_kubelet_root_directory(kubelets_elsewhere: Cluster) -> None:
    cluster = kubelets_elsewhere
    cluster.apply(a_vm("elsewhere"))
    node = Lab(cluster.name).node(cluster.running("elsewhere")["status"]["nodeName"])
    launcher = cluster.launcher("elsewhere")["metadata"]["uid"]
    assert node.run(["ls", f"{KUBELET_ROOT}/pods/{launcher}/volumes/kubernetes.io~empty-dir"]).stdout.split()
    assert node.run(["find", "/var/lib/kubelet", "-name", launcher]).stdout == ""
