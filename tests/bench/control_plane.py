# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cp-*: the real virt-controller on a real API server with stub nodes, and many VMs.

cp-vm-rate10: ten VMs a second; from the POST until the status is Running. cp-burst: all at once; the time until all
run. cp-cpu: CPU time of virt-controller and of the API server (with etcd) for each started VM. cp-rss: growth of
virt-controller's memory for each VM. cp-stop: from the delete of a VM until it is gone.

CONTROL_PLANE_VMS: the number at ten a second (1000). CONTROL_PLANE_MORE: the number at the end (2000).
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE, Key, Resource
from controlplane.api.registry import KINDS
from controlplane.api.schema.crds import crd
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import ApiError
from controlplane.kube.client import Client, Selection
from controlplane.kube.credentials import from_kubeconfig
from controlplane.kube.transport import Request, Transport
from controlplane.kube.watch import WatchCache
from lab import Lab
from tests.bench.stub_nodes import NODES, StubNodes
from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_api.test_real_api import collection

ROOT = Path(__file__).parents[2]
CONTROL_PLANE, NAMESPACE = "virt", "default"
PER_SECOND = 10
AT_ONCE = 64
"""Concurrent requests of users."""
SECONDS_AT_MOST, KIB_AT_MOST, UPSTREAMS_CPU_SECONDS = 1.0, 20.0, 0.17
STOP_SECONDS_AT_MOST = 1.2
STOPPED = 50
HUNG_SECONDS = 900.0
_TICKS = os.sysconf("SC_CLK_TCK")
_SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")

Report = Callable[[dict[str, Any]], None]
Json = dict[str, Any]


@dataclass
class Machines:
    """When each VM was created, ran, and was gone (monotonic)."""

    client: Client
    asked: dict[str, float] = field(default_factory=dict)
    ran: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        if after is None:
            self.gone[key.name] = time.monotonic()
        elif key.name not in self.ran and json.loads(after).get("status", {}).get("printableStatus") == "Running":
            self.ran[key.name] = time.monotonic()
        self.news.set()

    async def start(self, name: str) -> None:
        self.asked[name] = time.monotonic()
        await self.client.create(VIRTUAL_MACHINE, NAMESPACE, a_vm(name))

    async def stop(self, name: str) -> None:
        vm = await self.client.get(VIRTUAL_MACHINE, Key(NAMESPACE, name))
        self.ended[name] = time.monotonic()
        await self.client.delete(VIRTUAL_MACHINE, Key(NAMESPACE, name), uid=vm["metadata"]["uid"])

    async def wait(self, marks: dict[str, float], number: int) -> None:
        """Wait until `number` of them have a mark."""
        async with asyncio.timeout(HUNG_SECONDS):
            while len(marks) < number:
                self.news.clear()
                await self.news.wait()

    async def at_rate(self, names: Sequence[str]) -> None:
        """Create ten VMs a second, regardless of how long each takes."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(names):
                await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
                group.create_task(self.start(name))
        await self.wait(self.ran, len(self.asked))

    async def at_once(self, names: Sequence[str]) -> float:
        """Create all; return the seconds until all run."""
        began, places = time.monotonic(), asyncio.Semaphore(AT_ONCE)

        async def start(name: str) -> None:
            async with places:
                await self.start(name)

        await asyncio.gather(*map(start, names))
        await self.wait(self.ran, len(self.asked))
        return time.monotonic() - began

    def seconds(self, names: Sequence[str]) -> list[float]:
        return sorted(self.ran[name] - self.asked[name] for name in names)


def a_vm(name: str) -> Json:
    devices = {
        "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "default", "masquerade": {}}],
    }
    spec = {
        "domain": {"memory": {"guest": "64Mi"}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": "localhost/x:1"}}],
    }
    meta = {"name": name, "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]}  # as admission sets it
    kind = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
    return {**kind, "metadata": meta, "spec": {"runStrategy": "Always", "template": {"spec": spec}}}


def run(report: Report) -> None:
    """Measure on its own API server. Raises AssertionError after the last report when a limit is exceeded."""
    few = int(os.environ.get("CONTROL_PLANE_VMS") or 1000)
    many = int(os.environ.get("CONTROL_PLANE_MORE") or 2000)
    with tempfile.TemporaryDirectory() as directory, Lab("bench-cp").running(nodes=0, controllers=False) as lab:
        account = asyncio.run(_install(lab, Path(directory)))
        with _controller(account) as pid:
            failures = asyncio.run(_measure(report, lab, pid, few, many))
    if failures:
        raise AssertionError("; ".join(failures))


async def _measure(report: Report, lab: Lab, pid: int, few: int, many: int) -> list[str]:
    async with _a_client(lab.kubeconfig) as users, _a_client(lab.kubeconfig) as nodes, asyncio.TaskGroup() as group:
        machines = Machines(users)
        vms = WatchCache(users, Selection(VIRTUAL_MACHINE), SystemClock())
        vms.subscribe(machines.changed)
        background = [group.create_task(vms.run()), group.create_task(StubNodes(nodes).run())]
        await machines.at_once(["first"])  # the leader is ready now
        failures = [*await _rate(report, machines, pid, few), *await _more(report, machines, pid, few, many)]
        failures += await _stop(report, machines)
        for task in background:
            task.cancel()
    return failures


async def _rate(report: Report, machines: Machines, pid: int, vms: int) -> list[str]:
    names = [f"rate-{number}" for number in range(vms)]
    before, server = _cpu(pid), _servers_cpu()
    await machines.at_rate(names)
    seconds = machines.seconds(names)
    p99 = _quantile(seconds, 0.99)
    report(
        {
            "name": "cp-vm-rate10",
            "value": round(p99, 3),
            "unit": "s (P99 of POST to Running)",
            "p50": round(_quantile(seconds, 0.5), 3),
            "p95": round(_quantile(seconds, 0.95), 3),
            "vms": vms,
            "target": SECONDS_AT_MOST,
        }
    )
    controller_cpu = (_cpu(pid) - before) / vms
    report(
        {
            "name": "cp-cpu",
            "value": round(controller_cpu, 4),
            "unit": "CPU-s of virt-controller per VM",
            "api_server_and_etcd": round((_servers_cpu() - server) / vms, 4),
            "upstreams": UPSTREAMS_CPU_SECONDS,
            "ratio": round(controller_cpu / UPSTREAMS_CPU_SECONDS, 2),
        }
    )
    return [f"cp-vm-rate10 is {p99:.2f} s, at most {SECONDS_AT_MOST}"] if p99 > SECONDS_AT_MOST else []


async def _more(report: Report, machines: Machines, pid: int, few: int, many: int) -> list[str]:
    before = await _settled_rss(pid)
    makespan = await machines.at_once([f"burst-{number}" for number in range(many - few)])
    report(
        {
            "name": "cp-burst",
            "value": round(makespan, 1),
            "unit": "s until all run",
            "vms": many - few,
            "per_second": round((many - few) / makespan, 1),
        }
    )
    slope = (await _settled_rss(pid) - before) / (many - few)
    report({"name": "cp-rss", "value": round(slope, 1), "unit": "KiB per VM", "vms": many, "base_mib": before // 1024})
    return [f"cp-rss is {slope:.1f} KiB, at most {KIB_AT_MOST}"] if slope > KIB_AT_MOST else []


async def _stop(report: Report, machines: Machines) -> list[str]:
    names = list(machines.ran)[1 : STOPPED + 1]
    for number, name in enumerate(names):
        await machines.stop(name)
        await machines.wait(machines.gone, number + 1)
    seconds = sorted(machines.gone[name] - machines.ended[name] for name in names)
    p99 = _quantile(seconds, 0.99)
    report(
        {
            "name": "cp-stop",
            "value": round(p99, 3),
            "unit": "s (P99 of delete to gone)",
            "p50": round(_quantile(seconds, 0.5), 3),
        }
    )
    return [f"cp-stop is {p99:.2f} s, at most {STOP_SECONDS_AT_MOST}"] if p99 > STOP_SECONDS_AT_MOST else []


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS


def _servers_cpu() -> float:
    """CPU seconds of every API server and etcd of this lab so far; their command lines contain its name."""
    spent = 0.0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError, ValueError):
            words = path.read_bytes().split(b"\0")
            if b"bench-cp" in path.read_bytes() and words[0].rsplit(b"/", 1)[-1] in (b"kube-apiserver", b"etcd"):
                spent += _cpu(int(path.parent.name))
    return spent


def _rss(pid: int) -> int:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0])


async def _settled_rss(pid: int) -> int:
    """Return the resident memory in KiB once it is stable."""
    last, since = 0, time.monotonic()
    while True:
        current = _rss(pid)
        if abs(current - last) > 256:
            last, since = current, time.monotonic()
        elif time.monotonic() - since > 5:
            return current
        await asyncio.sleep(0.5)


@asynccontextmanager
async def _a_client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Transport(await from_kubeconfig(kubeconfig), "bench") as transport:
        yield Client(transport, "bench")


async def _install(lab: Lab, directory: Path) -> Path:
    """Create CRDs, nodes and the objects that virt-controller needs; return the kubeconfig of its account."""
    async with _a_client(lab.kubeconfig) as client:

        async def post(path: str, body: Json) -> Json:
            answer = await client.transport.send(Request("POST", path, f"create {path}", json.dumps(body).encode()))
            return dict(json.loads(answer))

        await post("/api/v1/namespaces", {"metadata": {"name": CONTROL_PLANE}})
        for kind in KINDS:
            await post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
        for template in ("rbac-controller", "secrets"):
            for body in render(f"{template}.yaml.j2"):
                await post(collection(body), body)
        for number in range(NODES):
            await client.create(NODE, "", {"metadata": {"name": f"node-{number}"}})
        with suppress(ApiError):
            await client.create(_SERVICE_ACCOUNT, NAMESPACE, {"metadata": {"name": "default"}})
        account = f"/api/v1/namespaces/{CONTROL_PLANE}/serviceaccounts/kubevirt-controller/token"
        token = await post(account, {"spec": {"expirationSeconds": 36000}})
    config = yaml.safe_load(lab.kubeconfig.read_text())
    config["users"] = [{"name": "u", "user": {"token": token["status"]["token"]}}]
    config["contexts"][0]["context"]["user"] = "u"
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))
    return directory / "kubeconfig"


def _free_port() -> int:
    """Return a free port: other benchmarks may run at the same time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


@contextmanager
def _controller(account: Path) -> Iterator[int]:
    """Run virt-controller; yields its pid."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins' / 'module_utils'}",
        "KUBECONFIG": str(account),
        "POD_NAMESPACE": CONTROL_PLANE,
        "POD_NAME": "bench",
        "VIRT_LAUNCHER_IMAGE": "localhost/virtops/virt-launcher:0.1.0",
        "HEALTH_ADDRESS": "127.0.0.1",
        "HEALTH_PORT": str(_free_port()),
        "LOG_LEVEL": "WARNING",
    }
    process = subprocess.Popen([sys.executable, "-m", "controlplane.virt_controller"], env=environment, cwd=ROOT)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)
