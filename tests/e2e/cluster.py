# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A deployed cluster as a test sees it: kubectl, waiting, a guest's console. conftest.py creates it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from controlplane.api.objects.resources import (
    EVENT,
    KUBEVIRT,
    LEASE,
    NODE,
    POD,
    SECRET,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Resource,
)
from controlplane.kube.client import collection_path
from lab import Lab
from lab.cluster.api import Api
from lab.errors import ApiError, LabError
from tests.e2e.console import LIMIT_SECONDS, Console, NotYet

COUNTER = re.compile(r"virtops-guest: counter (\d+)")
READY = "virtops-guest: ready"

CONTROL_PLANE = ("kube-apiserver", "etcd")
NODE_PROGRAMS = ("kubelet", "containerd")
VICTIMS = {
    "virt-handler": ("-m controlplane.virt_handler",),
    "virt-node": ("-m controlplane.virt_node",),
    "virt-controller": ("-m controlplane.virt_controller",),
    "virt-api": ("-m controlplane.virt_api",),
    "virt-launcher": ("-m controlplane.virt_launcher",),
    "libvirtd": ("/libvirtd",),
    "qemu": ("qemu-system-x86_64",),
}
"""Words of the command line that identify a process on a node; its cgroup has the UID of its Pod."""

SIGNAL = """
import os, sys
reached = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read().replace(chr(0), " ") + open(f"/proc/{pid}/cgroup").read()
    except OSError:
        continue
    if int(pid) != os.getpid() and all(word in line for word in sys.argv[2:]):
        try:
            os.kill(int(pid), int(sys.argv[1]))
        except ProcessLookupError:
            continue
        reached += 1
print(reached)
"""

EMULATORS = """
import json, os, re
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read()
    except OSError:
        continue
    guest = re.search("guest=([0-9a-f-]{36})", line)  # none in a QEMU that libvirt probes for its capabilities
    if line.startswith("/usr/bin/qemu-system-x86_64") and guest:
        found.append(guest.group(1))
print(json.dumps(found))
"""

REQUEST = """
import sys, urllib.request

urllib.request.urlopen(sys.argv[1], timeout=30).read()
print("done")
"""


class KubectlFailed(AssertionError):
    """kubectl failed; the text has the command and its output."""


SHORT_NAMES = {
    "vm": "virtualmachines",
    "vmi": "virtualmachineinstances",
    "vmim": "virtualmachineinstancemigrations",
    "vmirs": "virtualmachineinstancereplicasets",
    "vmpool": "virtualmachinepools",
}
SELECTORS = {"-l": "labelSelector", "--field-selector": "fieldSelector"}


RESOURCES = {
    resource.plural: resource
    for resource in (
        *(EVENT, LEASE, NODE, POD, SECRET),
        *(KUBEVIRT, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION),
        *(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_POOL),
        Resource("apps", "v1", "daemonsets", "DaemonSet"),
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
        Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
        Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
        Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
        Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    )
}


def _collection(kind: str, namespace: str | None) -> str:
    """Return the path of a kind's objects; namespace: None for all of them."""
    plural = SHORT_NAMES.get(kind) or (kind if kind.endswith("s") else f"{kind}s")
    return collection_path(RESOURCES[plural], namespace or "")


@dataclass(frozen=True)
class Cluster:
    """One lab with the control plane on it."""

    name: str
    kubeconfig: Path
    audit_log: Path
    nodes: tuple[str, ...]
    program: tuple[str, ...]
    """The kubectl to run."""
    clients: threading.local = field(default_factory=threading.local, repr=False, compare=False)
    """An API client for each thread."""

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl and return its output; raise KubectlFailed on an error."""
        done = self.try_kubectl(*arguments, given=given)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def try_kubectl(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl and ignore errors."""
        command = [*self.program, *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=900, check=False)

    @property
    def api(self) -> Api:
        """This thread's API client: a read costs a millisecond, where a kubectl costs a third of a CPU second."""
        if not hasattr(self.clients, "api"):
            self.clients.api = Lab(self.name).api()
        api: Api = self.clients.api
        return api

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """Return an object; None when it does not exist."""
        return self.api.get(f"{_collection(kind, namespace)}/{name}")

    def list(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """Return objects, of all namespaces by default. arguments: -n, -l and --field-selector, as of kubectl."""
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        path = _collection(kind, options.pop("-n", None))
        query = urlencode({SELECTORS[option]: value for option, value in options.items()})
        body = self.api.get(f"{path}?{query}")
        return [] if body is None else body["items"]

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or change objects."""
        self.kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def wait(
        self, kind: str, name: str, path: str, value: str, *, seconds: float = LIMIT_SECONDS, namespace: str = "default"
    ) -> None:
        """Wait by watch until a field has a value."""
        done = self.try_kubectl(
            *("wait", f"{kind}/{name}", "-n", namespace),
            *(f"--for=jsonpath={{{path}}}={value}", f"--timeout={seconds:.0f}s"),
        )
        if done.returncode != 0:
            output = self.try_kubectl(
                *("logs", "-n", namespace, "-l", f"vmi.kubevirt.io/id={name}", "-c", "compute", "--tail=15")
            )
            obj = json.dumps(self.get(kind, name, namespace))
            raise NotYet(f"{kind}/{name} {path} is not {value}: {done.stderr}\n{output.stdout[-1500:]}\n{obj}")

    def wait_gone(self, kind: str, name: str, *, seconds: float = LIMIT_SECONDS, namespace: str = "default") -> None:
        """Wait by watch until an object is gone."""
        done = self.try_kubectl("wait", f"{kind}/{name}", "-n", namespace, "--for=delete", f"--timeout={seconds:.0f}s")
        if done.returncode != 0 and "NotFound" not in done.stderr:
            raise NotYet(f"{kind}/{name} is still there: {done.stderr}\n{json.dumps(self.get(kind, name, namespace))}")

    def running(self, name: str, *, seconds: float = LIMIT_SECONDS, namespace: str = "default") -> dict[str, Any]:
        """Wait until a VM's instance runs, and return the VMI."""
        self.eventually(lambda: self.get("vmi", name, namespace), seconds=seconds, what=f"vmi/{name} exists")
        self.wait("vmi", name, ".status.phase", "Running", seconds=seconds, namespace=namespace)
        vmi = self.get("vmi", name, namespace)
        assert vmi is not None
        return vmi

    def another(self, name: str, uid: str, *, seconds: float = LIMIT_SECONDS) -> dict[str, Any]:
        """Wait until a VM has an instance with another UID, and return it."""

        def look() -> dict[str, Any] | None:
            vmi = self.get("vmi", name)
            return None if vmi is None or vmi["metadata"]["uid"] == uid else vmi

        result: dict[str, Any] = self.eventually(look, seconds=seconds, what=f"vmi/{name} is another than {uid}")
        return result

    def events(self, uid: str, namespace: str = "default") -> list[tuple[str, str, str]]:
        """Return the Events of an object, oldest first: type, reason and message of each."""
        events = self.list("events", "-n", namespace, "--field-selector", f"involvedObject.uid={uid}")
        events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["type"], event["reason"], event["message"]) for event in events]

    def eventually(self, look: Any, *, what: str, seconds: float = LIMIT_SECONDS) -> Any:
        """Poll until the result is truthy, for state without a watch.

        Errors of the API server and of kubectl are retried: a restarted kubelet does not know its Pods yet.
        """
        deadline = time.monotonic() + seconds
        last_error: Exception | None = None
        while True:
            try:
                if value := look():
                    return value
            except (KubectlFailed, ApiError) as error:
                last_error = error
            if time.monotonic() > deadline:
                raise NotYet(f"not within {seconds} s: {what}") from last_error
            time.sleep(0.1)

    def launcher(self, vmi: str, namespace: str = "default") -> dict[str, Any]:
        """Return the launcher Pod of a VMI that has not ended; with several, the one that owns the run.

        Another one may be the target of a migration that waits for a node.
        """
        pods = self.list("pods", "-n", namespace, "-l", f"kubevirt.io=virt-launcher,vmi.kubevirt.io/id={vmi}")
        alive = [pod for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        status = (self.get("vmi", vmi, namespace) or {}).get("status", {})
        owners = [pod for pod in alive if pod["metadata"]["uid"] in status.get("activePods", {})] or alive
        assert len(owners) == 1, f"{len(owners)} launchers of {vmi}"
        return owners[0]

    def subresource(
        self, name: str, verb: str, namespace: str = "default", body: str = "{}", of: str = "virtualmachines"
    ) -> None:
        """Call start, stop or restart of a VM, or a subresource of a VMI, as virtctl does."""
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/{of}/{name}/{verb}"
        self.kubectl("replace", "--raw", path, "-f", "-", given=body)

    def kill(self, victim: str, *words: str) -> int:
        """kill -9 a process by its role, on every node or in the control plane of the lab; return the number of
        processes.
        """
        if victim in CONTROL_PLANE:
            self.lab("kill", victim)
            return 1
        if victim in NODE_PROGRAMS:
            for node in self.nodes:
                self.lab("kill", "--node", node, victim)
            return len(self.nodes)
        return self.signal(signal.SIGKILL, victim, *words)

    def signal(self, number: signal.Signals, victim: str, *words: str) -> int:
        """Send a signal to a process on every node; return the number of processes."""
        sent = (self.on_node(node, SIGNAL, str(int(number)), *VICTIMS[victim], *words) for node in self.nodes)
        return sum(map(int, sent))

    def emulators(self) -> list[str]:
        """Return the VMI UID of every QEMU on all nodes; shows whether a guest runs twice."""
        return sorted(uid for node in self.nodes for uid in self.emulators_on(node))

    def emulators_on(self, node: str) -> list[str]:
        """Return the VMI UID of every QEMU on this node."""
        emulators: list[str] = json.loads(self.on_node(node, EMULATORS))
        return emulators

    def healthy(self, *, seconds: float = LIMIT_SECONDS) -> None:
        """Wait until the API serves, nodes are Ready and the Pods of the control plane are."""
        self.eventually(
            self.api.is_ready,
            seconds=seconds,
            what="the API is ready",
        )
        self.kubectl("wait", "nodes", "--all", "--for=condition=Ready", f"--timeout={seconds:.0f}s")
        self.eventually(lambda: not self._unready(), seconds=seconds, what="the control plane's Pods are Ready")

    def _unready(self) -> list[str]:
        """Return the control plane's Pods that are not Ready, without those being deleted."""
        pods = [pod for pod in self.list("pods", "-n", "kubevirt") if "deletionTimestamp" not in pod["metadata"]]
        ready = {"type": "Ready", "status": "True"}
        return [
            pod["metadata"]["name"]
            for pod in pods
            if not any(ready.items() <= condition.items() for condition in pod["status"].get("conditions", []))
        ]

    def lab(self, *arguments: str) -> str:
        """Run the lab command for this lab."""
        verb = 2 if arguments[0] in ("node", "image") else 1
        command = [sys.executable, "-m", "lab", *arguments[:verb], "--name", self.name, *arguments[verb:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    def on_node(self, node: str, script: str, *arguments: str) -> str:
        """Run a Python script inside a node."""
        return Lab(self.name).node(node).run(["python3", "-c", script, *arguments]).stdout

    def try_on_node(self, node: str, script: str, *arguments: str) -> str:
        """Run a Python script inside a node; ignore failures."""
        try:
            return self.on_node(node, script, *arguments).strip()
        except LabError:
            return ""

    def has_run(self, vmi: str, *, seconds: float) -> None:
        """Wait until the launcher of an instance has run for `seconds`."""
        (compute,) = self.launcher(vmi)["status"]["containerStatuses"]
        due = datetime.fromisoformat(compute["state"]["running"]["startedAt"]) + timedelta(seconds=seconds)
        self.eventually(lambda: datetime.now(UTC) > due, seconds=seconds, what=f"{vmi} has run for {seconds} s")

    def run_in_guest(self, vmi: str, what: str) -> None:
        """Have a guest run a command of tests.e2e.machines.serves_commands, as soon as it serves."""
        launcher = self.launcher(vmi)
        url = f"http://{launcher['status']['podIP']}:8080/cgi-bin/{what}"
        node = launcher["spec"]["nodeName"]
        self.eventually(lambda: self.try_on_node(node, REQUEST, url) == "done", seconds=60, what=f"{vmi} runs {what}")

    @contextmanager
    def console(self, pod: str, namespace: str = "default") -> Iterator[Console]:
        """Follow the log of a launcher, which copies the guest's serial console."""
        command = [
            *(*self.program, "--kubeconfig", str(self.kubeconfig)),
            *("logs", "-f", "-n", namespace, pod, "-c", "compute"),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as process:
            try:
                yield Console(process)
            finally:
                process.kill()

    def counter(self, pod: str, namespace: str = "default") -> int:
        """Return the newest value of the guest's counter."""
        log = self.api.read(f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container=compute&tailLines=50")
        matches = COUNTER.findall(log.decode(errors="replace"))
        return int(matches[-1]) if matches else 0
