# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller as a process on a real API server, with its own account: its RBAC rules, and a change of the leader.

There are no nodes: the test binds Pods and reports for kubelet and virt-handler.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.api.registry import KINDS
from controlplane.api.schema.crds import crd
from controlplane.kube.client import Client
from controlplane.kube.credentials import from_kubeconfig
from controlplane.kube.transport import Request, Transport
from lab import Lab
from lab.cluster.api import Api
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.controlplane.asked_over_http import free_port
from tests.controlplane.policies.cluster import wait
from tests.controlplane.virt_api.test_manifests import render

pytestmark = pytest.mark.component

ROOT = Path(__file__).parents[3]
INSTALL_NAMESPACE = "virt"
VM = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "runStrategy": "Always",
        "template": {
            "spec": {
                "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "root"}]}},
                "volumes": [{"name": "root", "containerDisk": {"image": "localhost/virtops/test-guest:0.1.0"}}],
            }
        },
    },
}


@dataclass
class Cluster:
    lab: Lab
    kubectl_path: Path
    account: Path

    def kubectl(self, *arguments: str, body: Any = None) -> str:
        done = subprocess.run(
            [self.kubectl_path, "--kubeconfig", self.lab.kubeconfig, *arguments],
            input="" if body is None else json.dumps(body),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def create(self, *bodies: dict[str, Any]) -> None:
        self.kubectl("create", "-f", "-", body={"apiVersion": "v1", "kind": "List", "items": bodies})

    def get(self, kind: str, name: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return body

    def wait(self, what: str, path: str, value: str) -> None:
        self.kubectl("wait", what, f"--for=jsonpath={{{path}}}={value}", "--timeout=300s")

    def appear(self, what: str) -> None:
        self.kubectl("wait", what, "--for=create", "--timeout=300s")

    def report(self, what: str, status: dict[str, Any]) -> None:
        self.kubectl("patch", what, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    @contextmanager
    def controller(self, name: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a virt-controller that leads, or waits to lead. settings: further variables of its environment."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins' / 'module_utils'}",
            "KUBECONFIG": str(self.account),
            "POD_NAMESPACE": INSTALL_NAMESPACE,
            "POD_NAME": name,
            "VIRT_LAUNCHER_IMAGE": "localhost/virtops/virt-launcher:0.1.0",
            "HEALTH_PORT": str(free_port()),
            **settings,
        }
        process = subprocess.Popen([sys.executable, "-m", "controlplane.virt_controller"], env=environment, cwd=ROOT)
        try:
            yield process
            process.terminate()
            assert process.wait(timeout=300) == 0
        finally:
            process.kill()
            process.wait()


def are_established(api: Api) -> bool:
    """Whether all CRDs are served. `kubectl wait` fails for a CRD that has no conditions yet."""
    crds = (api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions") or {})["items"]
    conditions = [crd.get("status", {}).get("conditions") or () for crd in crds]
    return all(any((item["type"], item["status"]) == ("Established", "True") for item in group) for group in conditions)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("virt-controller")
    with Lab(f"virt-controller-{worker_id}").running(nodes=0, controllers=False) as lab:
        kubectl = ensure_programs(lab.cache, silent).kube("kubectl")
        created = Cluster(lab, kubectl, directory / "kubeconfig")
        created.create(*map(crd, KINDS))
        wait("the CRDs are established", partial(are_established, lab.api()), seconds=300)
        lab.up(0)  # A garbage collector that starts before the CRDs orphans dependents for half a minute.
        created.kubectl("create", "namespace", INSTALL_NAMESPACE)
        templates = ("rbac-controller", "secrets", "node-restriction", "launcher-pods")
        created.create(*(body for template in templates for body in render(f"{template}.yaml.j2")))
        token = created.kubectl("-n", INSTALL_NAMESPACE, "create", "token", "kubevirt-controller").strip()
        kubeconfig = yaml.safe_load(lab.kubeconfig.read_text())
        kubeconfig["users"] = [{"name": "u", "user": {"token": token}}]
        kubeconfig["contexts"][0]["context"]["user"] = "u"
        created.account.write_text(yaml.safe_dump(kubeconfig))
        yield created


def start(cluster: Cluster, *, begin: bool = True) -> str:
    """Bring vm/web to Running, as scheduler, kubelet and virt-handler do; return its Pod's name."""
    if begin:
        cluster.kubectl("create", "-f", "-", body=VM)
    cluster.appear("vmi/web")
    cluster.wait("vmi/web", ".status.phase", "Scheduling")
    pod = f"virt-launcher-web-{cluster.get('vmi', 'web')['metadata']['uid'][:8]}-1"
    cluster.appear(f"pod/{pod}")
    asyncio.run(bind(cluster.lab.kubeconfig, pod))
    cluster.wait("vmi/web", ".metadata.labels.kubevirt\\.io/nodeName", "node-1")
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    compute = {"name": "compute", "ready": True, "image": "x", "imageID": "x", "restartCount": 0, "state": state}
    ready = {"type": "Ready", "status": "True"}
    cluster.report(f"pod/{pod}", {"phase": "Running", "containerStatuses": [compute], "conditions": [ready]})
    cluster.wait("vmi/web", ".status.phase", "Scheduled")
    vmi = cluster.get("vmi", "web")
    assert vmi["status"]["activePods"] == {cluster.get("pod", pod)["metadata"]["uid"]: "node-1"}
    cluster.report("vmi/web", {"phase": "Running"})
    cluster.wait("vm/web", ".status.printableStatus", "Running")
    return pod


async def bind(kubeconfig: Path, pod: str, node: str = "node-1") -> None:
    binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    async with Transport(await from_kubeconfig(kubeconfig), "test") as transport:
        path = f"/api/v1/namespaces/default/pods/{pod}/binding"
        await Client(transport, "test").transport.send(Request("POST", path, "bind", json.dumps(binding).encode()))


def test_a_vm_from_start_to_cascading_deletion(cluster: Cluster) -> None:
    """Start, status, Events, orphan delete, adoption, cascade delete, as the role's service account."""
    with cluster.controller("one"):
        pod = start(cluster)
        vm = cluster.get("vm", "web")
        assert (vm["status"]["created"], vm["status"]["ready"]) == (True, True)
        uid = cluster.get("vmi", "web")["metadata"]["uid"]

        # The garbage collector discovers new kinds every 30 s, and these are new.
        cluster.kubectl("delete", "vm", "web", "--cascade=orphan", "--timeout=300s")
        assert "ownerReferences" not in cluster.get("vmi", "web")["metadata"]
        cluster.kubectl("create", "-f", "-", body=VM)
        cluster.wait("vm/web", ".status.printableStatus", "Running")
        adopted = cluster.get("vmi", "web")["metadata"]
        assert adopted["uid"] == uid
        assert adopted["ownerReferences"][0]["uid"] == cluster.get("vm", "web")["metadata"]["uid"]

        cluster.kubectl("delete", "vm", "web", "--wait=false")
        cluster.wait("vm/web", ".status.printableStatus", "Terminating")
        cluster.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
        cluster.kubectl("wait", "vm/web", "--for=delete", "--timeout=300s")
        events = json.loads(cluster.kubectl("get", "events", "-o", "json"))["items"]
        reasons = {event["reason"] for event in events if event["involvedObject"]["kind"] == "VirtualMachine"}
        ended = "NodeGone"  # there is no Node node-1, and the Pod is gone
        assert reasons - {"Unschedulable"} == {"SuccessfulCreate", ended}, (
            "the scheduler may be faster than the binding"
        )


def test_a_standby_takes_over_when_the_leader_leaves(cluster: Cluster) -> None:
    with cluster.controller("one") as leader:
        cluster.kubectl("create", "-f", "-", body=VM)
        cluster.appear("vmi/web")
        with cluster.controller("two"):
            leader.terminate()
            leader.wait(timeout=300)
            start(cluster, begin=False)
            cluster.kubectl("delete", "pod", "--all", "--force", "--grace-period=0")
            cluster.kubectl("delete", "vm", "web", "--wait=false")
            cluster.kubectl("wait", "vm/web", "--for=delete", "--timeout=300s")


def test_a_node_with_an_expired_lease_is_not_schedulable(cluster: Cluster) -> None:
    labels = {"kubevirt.io/schedulable": "true", "zone": "a"}
    cluster.kubectl("create", "-f", "-", body=named("v1", "Node", "silent", labels=labels))
    lease = named("coordination.k8s.io/v1", "Lease", "virt-handler-silent", namespace=INSTALL_NAMESPACE)
    spec = {"holderIdentity": "pod", "leaseDurationSeconds": 1, "renewTime": "2999-01-01T00:00:00.000000Z"}
    cluster.kubectl("create", "-f", "-", body={**lease, "spec": spec})
    with cluster.controller("one"):
        cluster.wait("node/silent", ".metadata.labels.kubevirt\\.io/schedulable", "false")
        cluster.kubectl("wait", "events", "--field-selector=reason=VirtHandlerSilent", "--for=create", "--timeout=300s")
    assert cluster.get("node", "silent")["metadata"]["labels"]["zone"] == "a"


SET = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstanceReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, "nodeSelector": {"nowhere": "true"}},
        },
    },
}
HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": SET["apiVersion"], "kind": SET["kind"], "name": "web"},
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}


def test_a_replica_set_has_the_scale_subresource(cluster: Cluster) -> None:
    """With virt-controller's own account: status, VMIs, owner references."""
    with cluster.controller("one"):
        cluster.kubectl("create", "-f", "-", body=SET)
        cluster.wait("vmirs/web", ".status.replicas", "1")
        assert cluster.get("vmirs", "web")["spec"]["replicas"] == 1, "the API server fills it in"
        cluster.kubectl("scale", "vmirs/web", "--replicas=3")
        cluster.wait("vmirs/web", ".status.replicas", "3")
        scale = json.loads(cluster.kubectl("get", "--raw", f"{SETS}/web/scale"))
        assert scale["status"] == {"replicas": 3, "selector": "app=web"}
        cluster.kubectl("create", "-f", "-", body=HPA)
        cluster.kubectl("wait", "hpa/web", "--for=condition=AbleToScale", "--timeout=300s")
        cluster.kubectl("delete", "hpa", "web")

        three = set(instances(cluster))
        assert len(three) == 3
        cluster.kubectl("scale", "vmirs/web", "--replicas=1")
        cluster.kubectl("wait", *(f"vmi/{name}" for name in sorted(three)[:2]), "--for=delete", "--timeout=300s")
        (last,) = instances(cluster)
        cluster.kubectl("delete", "vmirs", "web", "--cascade=orphan", "--timeout=300s")
        assert "ownerReferences" not in cluster.get("vmi", last)["metadata"]
        cluster.kubectl("create", "-f", "-", body=SET)
        cluster.wait("vmirs/web", ".status.replicas", "1")
        assert instances(cluster) == [last], "it was adopted"
        cluster.kubectl("delete", "vmirs", "web")
        cluster.kubectl("wait", f"vmi/{last}", "--for=delete", "--timeout=300s")


SETS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancereplicasets"


def instances(cluster: Cluster) -> list[str]:
    listed = json.loads(cluster.kubectl("get", "vmi", "-l", "app=web", "-o", "json"))["items"]
    return [body["metadata"]["name"] for body in listed]


def named(version: str, kind: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
