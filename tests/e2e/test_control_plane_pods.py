# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pods of the control plane when their node is drained or tainted for critical add-ons, and when the leader or the
Secrets are deleted.

Upstream's other cases: a killed API server is in test_faults.py; changed objects, and a removal with machines, are
tested with the role (extensions/molecule).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

DIRECTORS = ["virt-api", "virt-controller"]
TAINT = "CriticalAddonsOnly"
ORDINARY = "ordinary"


def pods(cluster: Cluster, *selector: str) -> dict[str, str]:
    """Return the UIDs of the control plane's Pods that are not being deleted, by name."""
    metas = [pod["metadata"] for pod in cluster.list("pods", "-n", "kubevirt", *selector)]
    return {meta["name"]: meta["uid"] for meta in metas if "deletionTimestamp" not in meta}


def evict(cluster: Cluster, pod: str) -> str:
    """Request an eviction, as kubectl drain does; return the refusal, "" when it is accepted."""
    meta = {"name": pod, "namespace": "kubevirt"}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})
    path = f"/api/v1/namespaces/kubevirt/pods/{pod}/eviction"
    return cluster.try_kubectl("create", "--raw", path, "-f", "-", given=body).stderr


@pytest.mark.parametrize("name", ["virt-api", "virt-controller"])
def test_a_drain_evicts_one_pod_at_a_time(cluster: Cluster, name: str) -> None:
    first, second = pods(cluster, "-l", f"kubevirt.io={name}")

    assert evict(cluster, first) == ""
    assert "disruption budget" in evict(cluster, second)

    assert second in pods(cluster, "-l", f"kubevirt.io={name}")
    cluster.kubectl("rollout", "status", f"deployment/{name}", "-n", "kubevirt", f"--timeout={LIMIT_SECONDS}s")
    cluster.healthy()


def an_ordinary_pod(cluster: Cluster) -> dict[str, Any]:
    """Return a Pod without tolerations, of an existing image."""
    workload = cluster.get("deployment", "virt-api", "kubevirt")
    assert workload is not None
    image = workload["spec"]["template"]["spec"]["containers"][0]["image"]
    command = ["/usr/bin/python3", "-c", "import signal; signal.pause()"]
    container = {"name": "main", "image": image, "command": command}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ORDINARY, "namespace": "default"}, "spec": spec}


@pytest.fixture
def ordinary(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with an ordinary Pod; afterwards its node is schedulable again."""
    cluster.apply(an_ordinary_pod(cluster))
    cluster.wait("pod", ORDINARY, ".status.phase", "Running")
    yield cluster
    cluster.kubectl("taint", "node", cluster.nodes[0], f"{TAINT}-")


def test_a_node_tainted_for_critical_addons_keeps_the_control_plane(ordinary: Cluster) -> None:
    before = pods(ordinary)
    assert len(before) == 2 * len(DIRECTORS) + 2 * len(ordinary.nodes)

    ordinary.kubectl("taint", "node", ordinary.nodes[0], f"{TAINT}=:NoExecute")

    ordinary.wait_gone("pod", ORDINARY)
    assert pods(ordinary) == before


def leader(cluster: Cluster) -> str:
    """Return the name of the leading Pod, "" without one."""
    lease = cluster.get("lease", "virt-controller", "kubevirt")
    holder = "" if lease is None else str(lease["spec"].get("holderIdentity", ""))
    return next((name for name in pods(cluster, "-l", "kubevirt.io=virt-controller") if holder.startswith(name)), "")


def test_another_pod_leads_after_the_leaders_pod_is_deleted(cluster: Cluster) -> None:
    old_leader = cluster.eventually(lambda: leader(cluster), what="one leads")

    cluster.kubectl("delete", "pod", old_leader, "-n", "kubevirt", "--wait=false")
    cluster.eventually(lambda: leader(cluster) not in ("", old_leader), what="another leads")

    cluster.apply(a_vm("led"))
    cluster.running("led")
    cluster.healthy()


def test_deleted_secrets_are_recreated_and_certificates_stay_trusted_meanwhile(cluster: Cluster) -> None:
    """Admission, which the API server trusts by one CA bundle, and virt-api, which virt-handlers trust by another.

    A new certificate is served only a minute later, when its CA bundle has reached every client; until then the old one
    is.
    """
    cluster.apply(a_vm("trusting"))
    cluster.running("trusting")
    before = secrets(cluster)
    assert {"kubevirt-ca", "kubevirt-virt-api-certs", "kubevirt-virt-api-client-certs"} <= before.keys()

    cluster.kubectl("delete", "secret", "-n", "kubevirt", *before)

    def are_back() -> bool:
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=a_vm("asked-meanwhile").text)
        after = secrets(cluster)
        return after.keys() == before.keys() and not {*after.values()} & {*before.values()}

    cluster.eventually(are_back, what="the Secrets are back, and filled")
    for verb in ("pause", "unpause"):
        cluster.subresource("trusting", verb, of="virtualmachineinstances")
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=a_vm("asked-later").text)
    cluster.kubectl("delete", "vm", "--all", "--wait=false")


def secrets(cluster: Cluster) -> dict[str, str]:
    """Return the certificates in the Secrets of the control plane, by name; without empty ones."""
    data_by_name = {
        secret["metadata"]["name"]: secret.get("data", {}) for secret in cluster.list("secrets", "-n", "kubevirt")
    }
    certificates = {name: data.get("tls.crt") or data.get("ca.crt") for name, data in data_by_name.items()}
    return {name: str(certificate) for name, certificate in certificates.items() if certificate}
