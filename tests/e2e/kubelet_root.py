# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab whose kubelets have another root directory, as in k0s and MicroK8s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lab.cluster.node import Node
from lab.machines.machine import Program
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed

KUBELET_ROOT = "/var/lib/k0s/kubelet"


@contextmanager
def deployed_elsewhere(name: str, nodes: int) -> Iterator[Cluster]:
    """Have the control plane deployed on such a lab inside the block.

    The programs of a lab are described in this process: only this process may restart one.
    """
    kubelet, binds = Node.kubelet, Node.binds

    def elsewhere(node: Node) -> Program:
        program = kubelet(node)
        return replace(program, argv=[*program.argv, f"--root-dir={KUBELET_ROOT}"])

    def also_there(node: Node) -> list[tuple[Path, str]]:
        return [*binds(node), (node.paths.root / "kubelet-root", KUBELET_ROOT)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Node, "kubelet", elsewhere)
        patch.setattr(Node, "binds", also_there)
        with deployed(name, nodes, control_plane_kubelet_root=KUBELET_ROOT) as cluster:
            yield cluster
