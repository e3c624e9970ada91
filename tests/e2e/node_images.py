# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images that one node has, by containerd's own client: to take one away, or to give one another name."""

from __future__ import annotations

from lab import Lab
from lab.images.containerd import CONTAINERD_SOCKET
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.e2e.cluster import Cluster


def images(cluster: Cluster, node: str, *arguments: str) -> str:
    """Run `ctr images` on a node."""
    client = ensure_programs(Lab(cluster.name).cache, silent).node("ctr")
    command = [str(client), "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", *arguments]
    return Lab(cluster.name).node(node).run(command).stdout
