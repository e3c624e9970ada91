# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy, run a machine, remove, on labs with the settings of distributions: python -m tests.distributions [NAME ...].

What the settings are: lab/cluster/distributions.py. Each step prints its seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from functools import partial

from lab.cluster.distributions import DISTRIBUTIONS, Distribution
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm
from tests.versions import VM, remove, timed

FIRST = "node-1"
"""The control-plane node, where the distribution has one."""
USER_DATA = """#!/bin/sh
nc -w 5 kubernetes 443 </dev/null && echo "short name: connected"
nc -w 5 kubernetes.default.svc.{domain} 443 </dev/null && echo "full name: connected"
"""


def check_placement(cluster: Cluster, distribution: Distribution) -> None:
    """Check that the controllers are on the control-plane node, if there is one, and nothing is missing."""
    for name in ("virt-api", "virt-controller"):
        nodes = {pod["spec"]["nodeName"] for pod in cluster.list("pods", "-n", "kubevirt", "-l", f"kubevirt.io={name}")}
        assert nodes == {FIRST} or not distribution.roles, (name, nodes)
    first = cluster.get("nodes", FIRST)
    assert first is not None
    takes_machines = first["metadata"]["labels"]["kubevirt.io/schedulable"]
    assert takes_machines == ("false" if distribution.taint else "true"), takes_machines


def provision(cluster: Cluster, distribution: Distribution) -> None:
    """Run a machine that connects by names of the cluster's domain, in a namespace without Pod Security labels."""
    cluster.apply(a_vm(VM, user_data=USER_DATA.format(domain=distribution.cluster_domain)))
    node = cluster.running(VM)["status"]["nodeName"]
    assert node != FIRST or not distribution.taint, node
    with cluster.console(cluster.launcher(VM)["metadata"]["name"]) as console:
        console.expect("short name: connected")
        console.expect("full name: connected")
    cluster.wait("vm", VM, ".status.ready", "true")


def run_like(name: str) -> None:
    """Run all steps on a lab of two nodes."""
    print(f"like {name}", flush=True)
    distribution = DISTRIBUTIONS[name]
    began = time.monotonic()
    root = distribution.kubelet_root
    with deployed(f"like-{name}", 2, lab_options={"like": name}, control_plane_kubelet_root=root) as cluster:
        print(f"    {time.monotonic() - began:6.1f} s  lab and deploy", flush=True)
        check_placement(cluster, distribution)
        timed("provision", partial(provision, cluster, distribution))
        timed("remove", partial(remove, cluster))


def main(names: Iterable[str]) -> None:
    for name in names:
        run_like(name)


if __name__ == "__main__":
    main(sys.argv[1:] or filter(None, DISTRIBUTIONS))
