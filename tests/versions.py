# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a control plane on other minor versions of Kubernetes: python -m tests.versions [MINOR ...].

Each version is compiled on its first use. The steps are those of an administrator; each prints its seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

from lab import Lab
from lab.programs.ensure import ensure_programs
from lab.programs.releases import RELEASES, release_of
from lab.progress import to_stderr
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import apply_role, deployed, upgrade
from tests.e2e.machines import a_vm

OLDEST_AND_NEWEST = (min(RELEASES), max(RELEASES))
GATED = ("1.33", "1.34")
"""Minor versions whose feature gate ImageVolume is off by default."""
VM = "traveller"
ONLY_MACHINES = {"drain_node_pods": False}


def provision(cluster: Cluster) -> None:
    cluster.apply(a_vm(VM))
    cluster.running(VM)
    cluster.wait("vm", VM, ".status.ready", "true")


def migrate(cluster: Cluster) -> None:
    kind = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration"}
    cluster.apply({**kind, "metadata": {"name": "move", "namespace": "default"}, "spec": {"vmiName": VM}})
    cluster.wait("vmim", "move", ".status.phase", "Succeeded")


def drain(cluster: Cluster) -> None:
    """Drain the node of the machine, which migrates."""
    node = cluster.running(VM)["status"]["nodeName"]
    for state in ("drained", "uncordoned"):
        apply_role(
            Lab(cluster.name), "drain_node", {**ONLY_MACHINES, "drain_node_name": node, "drain_node_state": state}
        )
    assert cluster.running(VM)["status"]["nodeName"] != node


def roll_out(cluster: Cluster) -> None:
    """Replace all components beside a running guest, as an upgrade does."""
    uid = cluster.running(VM)["metadata"]["uid"]
    images = ("control-plane", "virt-launcher")
    upgrade(cluster, control_plane_image_revisions=dict.fromkeys(images, "another build"))
    assert cluster.running(VM)["metadata"]["uid"] == uid


def remove(cluster: Cluster) -> None:
    upgrade(cluster, control_plane_state="absent", control_plane_remove_with_workloads=True)
    left = cluster.kubectl("get", "crd", "-o", "name")
    assert "kubevirt.io" not in left, left


STEPS: tuple[tuple[str, Callable[[Cluster], None]], ...] = (
    ("provision", provision),
    ("migrate", migrate),
    ("drain", drain),
    ("upgrade", roll_out),
    ("remove", remove),
)


def timed(title: str, run: Callable[[], object]) -> None:
    began = time.monotonic()
    run()
    print(f"    {time.monotonic() - began:6.1f} s  {title}", flush=True)


def run_version(minor: str) -> None:
    """Run all steps on a lab of two nodes."""
    print(f"Kubernetes {release_of(minor)}", flush=True)
    gates = {"ImageVolume": True} if minor in GATED else {}
    timed("build", partial(ensure_programs, Lab().cache, to_stderr, kubernetes=minor))
    began = time.monotonic()
    options = {"kubernetes": minor, "feature_gates": gates}
    with deployed(f"version-{minor.replace('.', '-')}", 2, lab_options=options) as cluster:
        print(f"    {time.monotonic() - began:6.1f} s  lab and deploy", flush=True)
        for title, step in STEPS:
            timed(title, partial(step, cluster))


def main(minors: Iterable[str]) -> None:
    for minor in minors:
        run_version(minor)


if __name__ == "__main__":
    main(sys.argv[1:] or OLDEST_AND_NEWEST)
