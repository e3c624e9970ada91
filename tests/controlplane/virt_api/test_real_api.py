# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api as a process on a real API server, with the role's manifests, its own account, certificates and kubectl.

There are no nodes, so an EndpointSlice with the host's address replaces the selector of the Service. Everything else
is as in a cluster.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.api.objects.resources import (
    API_SERVICE,
    KUBEVIRT,
    POD,
    SECRET,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
    Resource,
)
from controlplane.api.registry import KINDS
from controlplane.api.schema.crds import crd
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import AlreadyExists, ApiError, Forbidden, NotFound, Throttled, Unavailable
from controlplane.kube.client import Client, Selection
from controlplane.kube.configuration import Configuration
from controlplane.kube.credentials import from_kubeconfig
from controlplane.kube.transport import Request, Transport
from controlplane.kube.watch import WatchCache
from controlplane.tls.certificates import split_bundle
from controlplane.virt_api.settings import SECRET_NAME
from controlplane.virt_controller.certificates.observe import AUTHORITY_SECRET
from controlplane.virt_controller.certificates.run import run as run_certificates
from lab import Lab
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.controlplane.virt_api.test_manifests import render
from tests.support.tasks import cancel_task

pytestmark = pytest.mark.component

ROOT = Path(__file__).parents[3]
INSTALL_NAMESPACE = "virt"
CLOCK = SystemClock()
GROUP = "/apis/subresources.kubevirt.io/v1"
SERVICE_ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
VERBS = ("pause", "unpause", "reset", "softreboot", "freeze", "unfreeze")


@dataclass
class Installed:
    """A lab with our API installed and served."""

    lab: Lab
    kubeconfig: Path
    kubectl: Path
    controller: Path
    """The kubeconfig of virt-controller's account."""

    def run_kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.kubectl, "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Installed]:
    with installing(f"virt-api-{worker_id}", tmp_path_factory.mktemp("virt-api"), controllers=False) as api:
        yield api


@contextmanager
def installing(name: str, directory: Path, *, controllers: bool) -> Iterator[Installed]:
    """Install our API in a lab without nodes. controllers: whether Kubernetes' own controllers run."""
    with Lab(name).running(nodes=0, controllers=controllers) as lab:
        kubectl = ensure_programs(lab.cache, silent).kube("kubectl")
        accounts = asyncio.run(install(lab, directory))
        with processes(lab, accounts):
            asyncio.run(wait_served(lab, directory))
            yield Installed(lab, lab.kubeconfig, kubectl, accounts["controller"])


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


@asynccontextmanager
async def a_client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Transport(await from_kubeconfig(kubeconfig), "virtops-test") as transport:
        yield Client(transport, "test")


async def install(lab: Lab, directory: Path) -> dict[str, Path]:
    """Create CRDs and the role's objects; return the kubeconfigs of our accounts."""
    port = free_port(str(lab.describe().addresses.host))
    (directory / "port").write_text(str(port))
    async with a_client(lab.kubeconfig) as client:
        await post(client, "/api/v1/namespaces", {"metadata": {"name": INSTALL_NAMESPACE}})
        for kind in KINDS:
            await post(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
        service = {"metadata": {"name": "virt-api"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
        await post(client, f"/api/v1/namespaces/{INSTALL_NAMESPACE}/services", service)
        for template in ("rbac-api", "rbac-controller", "secrets", "apiservice", "webhooks"):
            for body in render(f"{template}.yaml.j2"):
                await post(client, collection(body), body)
        names = {"api": "kubevirt-apiserver", "controller": "kubevirt-controller"}
        return {name: await account(client, lab, account_name, directory) for name, account_name in names.items()}


def collection(body: dict[str, Any]) -> str:
    version, kind = body["apiVersion"], body["kind"]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace = body["metadata"].get("namespace")
    plural = "policies" if kind.endswith("Policy") else f"{kind.lower()}s"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


async def publish(client: Client, host: str, port: int) -> None:
    """Point the Service virt-api to the process once it listens, like a Pod that becomes ready."""
    async with asyncio.timeout(30):
        while True:
            try:
                _unused, writer = await asyncio.open_connection(host, port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            break
    endpoints = {
        "metadata": {"name": "virt-api", "labels": {"kubernetes.io/service-name": "virt-api"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
    }
    await post(client, f"/apis/discovery.k8s.io/v1/namespaces/{INSTALL_NAMESPACE}/endpointslices", endpoints)


async def post(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create an object; retry if the response is lost, because an API server that exits is restarted."""
    request = Request("POST", path, f"create {path}", json.dumps(body).encode())
    is_lost = False
    async with asyncio.timeout(60):
        while True:
            try:
                return dict(json.loads(await client.transport.send(request)))
            except Unavailable:
                is_lost = True
                await asyncio.sleep(0.05)
            except AlreadyExists:
                if not is_lost:
                    raise
                request_again = Request("GET", f"{path}/{body['metadata']['name']}", f"get {path}")
                return dict(json.loads(await client.transport.send(request_again)))


async def account(client: Client, lab: Lab, name: str, directory: Path) -> Path:
    """Write a kubeconfig with a token of the service account."""
    path = f"/api/v1/namespaces/{INSTALL_NAMESPACE}/serviceaccounts/{name}/token"
    token = await post(client, path, {"spec": {"expirationSeconds": 3600}})
    config = yaml.safe_load(lab.kubeconfig.read_text())
    config["users"] = [{"name": "u", "user": {"token": token["status"]["token"]}}]
    config["contexts"][0]["context"]["user"] = "u"
    path_written = directory / f"{name}.kubeconfig"
    path_written.write_text(yaml.safe_dump(config))
    return path_written


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@contextmanager
def processes(lab: Lab, accounts: dict[str, Path]) -> Iterator[None]:
    """Run virt-api with its own account, and the certificate loop with virt-controller's."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins' / 'module_utils'}",
        "POD_NAMESPACE": INSTALL_NAMESPACE,
        "LISTEN_ADDRESS": str(lab.describe().addresses.host),
        "LISTEN_PORT": (accounts["api"].parent / "port").read_text(),
        # The lab's API server presents a client certificate to webhooks; other clients are refused.
        "WEBHOOK_CLIENT_CA": (lab.state.certificates / "front-proxy-ca.crt").read_text(),
        "WEBHOOK_CLIENT_NAMES": '["front-proxy-client"]',
    }
    certificates = f"import asyncio, {__name__} as t; asyncio.run(t.keep_certificates({str(accounts['controller'])!r}))"
    commands = [
        ([sys.executable, "-m", "controlplane.virt_api"], accounts["api"]),
        ([sys.executable, "-c", certificates], accounts["controller"]),
    ]
    started = [
        subprocess.Popen(command, env=environment | {"KUBECONFIG": str(kubeconfig)}, cwd=ROOT)
        for command, kubeconfig in commands
    ]
    try:
        yield
        assert [process.poll() for process in started] == [None, None]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(timeout=300)


async def keep_certificates(kubeconfig: str) -> None:
    """Run the certificate loop of virt-controller's leader with its account."""
    async with a_client(Path(kubeconfig)) as client:
        defaults = Configuration(WatchCache(client, Selection(KUBEVIRT, INSTALL_NAMESPACE), CLOCK))
        await run_certificates(client, INSTALL_NAMESPACE, CLOCK, defaults)


async def wait_served(lab: Lab, directory: Path) -> None:
    """Wait until both APIServices are Available."""
    async with a_client(lab.kubeconfig) as client:
        await publish(client, str(lab.describe().addresses.host), int((directory / "port").read_text()))
        cache = WatchCache(client, Selection(API_SERVICE), CLOCK)
        changed = asyncio.Event()
        cache.subscribe(lambda *_unused: changed.set())
        running = asyncio.create_task(cache.run())
        async with asyncio.timeout(40):
            while not all(is_available(cache, f"{version}.subresources.kubevirt.io") for version in ("v1", "v1alpha3")):
                changed.clear()
                await changed.wait()
        await cancel_task(running)


def is_available(cache: WatchCache, name: str) -> bool:
    raw = cache.get(Key("", name))
    conditions = (json.loads(raw).get("status") or {}).get("conditions", []) if raw else []
    return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)


def a_vm(name: str = "web", **spec: Any) -> dict[str, Any]:
    domain = {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
    volumes = [{"name": "root", "containerDisk": {"image": "localhost/virtops/test-guest:0.1.0"}}]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"domain": domain, "volumes": volumes}}, **(spec or {"runStrategy": "Halted"})},
    }


_numbers = itertools.count(1)


@pytest.fixture
async def vm(client: Client) -> dict[str, Any]:
    """A VM for one test. It keeps our finalizer, because no controller removes it."""
    return await client.create(VIRTUAL_MACHINE, "default", a_vm(f"web-{next(_numbers)}"))


def key_of(obj: dict[str, Any]) -> Key:
    return Key(obj["metadata"]["namespace"], obj["metadata"]["name"])


async def put(client: Client, vm: dict[str, Any], action: str, body: str = "") -> None:
    path = f"{GROUP}/namespaces/default/virtualmachines/{vm['metadata']['name']}/{action}"
    await client.transport.send(Request("PUT", path, action, body.encode() or None))


def test_only_the_api_server_may_send_reviews(installed: Installed) -> None:
    """All tests that write show that reviews of the API server are accepted."""
    host, port = str(installed.lab.describe().addresses.host), (installed.controller.parent / "port").read_text()
    url = f"https://{host}:{port}/virtualmachines-validate"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, b"{}"), context=context, timeout=300)

    assert refused.value.code == 401
    refused.value.close()


async def test_start_works_through_the_aggregated_api(client: Client, vm: dict[str, Any]) -> None:
    await put(client, vm, "start", '{"dryRun": ["All"]}')
    assert (await client.get(VIRTUAL_MACHINE, key_of(vm)))["spec"]["runStrategy"] == "Halted"

    await put(client, vm, "start")
    assert (await client.get(VIRTUAL_MACHINE, key_of(vm)))["spec"]["runStrategy"] == "Always"

    with pytest.raises(ApiError, match="does not support manual start") as refused:
        await put(client, vm, "start")
    assert refused.value.reason == "Conflict"


async def test_restart_and_stop_of_a_running_vm(installed: Installed, client: Client) -> None:
    vm = await client.create(VIRTUAL_MACHINE, "default", a_vm(f"web-{next(_numbers)}", runStrategy="Always"))
    async with a_client(installed.controller) as controller:
        body = vm["spec"]["template"] | {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": vm["metadata"]["name"], "namespace": "default"},
        }
        vmi = await controller.create(VIRTUAL_MACHINE_INSTANCE, "default", body)
        await controller.patch(
            VIRTUAL_MACHINE_INSTANCE, key_of(vm), {"status": {"phase": "Running"}}, subresource="status"
        )

    await put(client, vm, "restart", '{"gracePeriodSeconds": 0}')

    queued = (await client.get(VIRTUAL_MACHINE, key_of(vm)))["status"]["stateChangeRequests"]
    assert queued == [{"action": "Stop", "uid": vmi["metadata"]["uid"]}, {"action": "Start"}]
    shortened = await client.get(VIRTUAL_MACHINE_INSTANCE, key_of(vm))
    assert shortened["spec"]["terminationGracePeriodSeconds"] == 1

    await put(client, vm, "stop")

    assert (await client.get(VIRTUAL_MACHINE, key_of(vm)))["spec"]["runStrategy"] == "Halted"


async def test_an_eviction_follows_the_strategy_of_its_vmi(installed: Installed, client: Client) -> None:
    with suppress(ApiError):
        await client.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": "default"}})
    outcomes = {}
    for strategy in ("None", "LiveMigrate", "LiveMigrateIfPossible", "External"):
        pod = await a_launcher(installed, client, strategy)
        try:
            await evict(client, pod)
            outcomes[strategy] = "evicted"
        except Throttled as error:
            outcomes[strategy] = str(error)
    external = await client.get(VIRTUAL_MACHINE_INSTANCE, Key("default", "evict-external"))

    assert outcomes["None"] == outcomes["LiveMigrateIfPossible"] == "evicted"
    assert "not live-migratable (no way to move it); stop it to free its node" in outcomes["LiveMigrate"]
    assert 'Eviction triggered evacuation of VMI "default/evict-external"' in outcomes["External"]
    assert external["status"]["evacuationNodeName"] == "node-1"
    assert external["metadata"]["annotations"]["kubevirt.io/eviction-source"] == "descheduler"
    await client.transport.send(
        Request("PUT", f"{GROUP}/namespaces/default/virtualmachines/evict-external/evacuate/cancel", "cancel", b"{}")
    )
    external = await client.get(VIRTUAL_MACHINE_INSTANCE, Key("default", "evict-external"))
    assert not external["status"].get("evacuationNodeName")
    assert await client.get(POD, Key("default", "virt-launcher-livemigrate"))


async def test_other_pods_are_evicted_as_usual(client: Client) -> None:
    """Also a Pod with the name of a launcher and without an owner."""
    with suppress(ApiError):
        await client.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": "default"}})
    containers = [{"name": "compute", "image": "localhost/x"}]
    for name in ("virt-launcher-of-nobody", "plain"):
        await client.create(POD, "default", {"metadata": {"name": name}, "spec": {"containers": containers}})
        await evict(client, name)
        with pytest.raises(NotFound):
            await client.get(POD, Key("default", name))


async def a_launcher(installed: Installed, client: Client, strategy: str) -> str:
    """Make a VMI that runs on a node, and its Pod. Return the Pod's name."""
    name, pod = f"evict-{strategy.lower()}", f"virt-launcher-{strategy.lower()}"
    template = a_vm()["spec"]["template"]["spec"] | {"evictionStrategy": strategy}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name}}
    vmi = await client.create(VIRTUAL_MACHINE_INSTANCE, "default", body | {"spec": template})
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "controller": True}
    meta = {"name": pod, "ownerReferences": [owner | {"uid": vmi["metadata"]["uid"]}]}
    spec = {"nodeName": "node-1", "containers": [{"name": "compute", "image": "localhost/x"}]}
    await client.create(POD, "default", {"metadata": meta, "spec": spec})
    cannot = {"type": "LiveMigratable", "status": "False", "message": "no way to move it"}
    async with a_client(installed.controller) as controller:
        status = {"status": {"phase": "Running", "nodeName": "node-1", "conditions": [cannot]}}
        await controller.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), status, subresource="status")
    return pod


async def evict(client: Client, pod: str) -> None:
    """Send an eviction like the descheduler."""
    meta = {"name": pod, "namespace": "default", "annotations": {"requested-by": "sigs.k8s.io/descheduler"}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
    await client.transport.send(Request("POST", path, "evict", json.dumps(body).encode()))


def test_kubectl_discovers_the_group(installed: Installed) -> None:
    resources = installed.run_kubectl("api-resources", "--api-group=subresources.kubevirt.io")
    raw = installed.run_kubectl("get", "--raw", "/apis/subresources.kubevirt.io")
    discovery = installed.run_kubectl("get", "--raw", "/apis/subresources.kubevirt.io/v1")
    version = installed.run_kubectl("get", "--raw", "/apis/subresources.kubevirt.io/v1/version")

    assert resources.returncode == 0, resources.stderr
    assert json.loads(raw.stdout)["preferredVersion"]["version"] == "v1"
    names = {resource["name"] for resource in json.loads(discovery.stdout)["resources"]}
    assert names == {
        *(f"virtualmachines/{verb}" for verb in ("start", "stop", "restart", "migrate", "evacuate/cancel")),
        "virtualmachines/expand-spec",
        "virtualmachines/portforward",
        "expand-vm-spec",
        "virtualmachineinstances/evacuate/cancel",
        *(f"virtualmachineinstances/{device}" for device in ("console", "vnc", "vnc/screenshot", "portforward")),
        *(f"virtualmachineinstances/{verb}" for verb in VERBS),
        *(f"virtualmachineinstances/{subresource}" for subresource in ("guestosinfo", "userlist", "filesystemlist")),
    }
    assert json.loads(version.stdout)["gitVersion"].startswith("v")


async def test_a_renewed_serving_pair_is_used_at_once(client: Client, vm: dict[str, Any]) -> None:
    secret = await client.get(SECRET, Key(INSTALL_NAMESPACE, SECRET_NAME))
    await client.patch(SECRET, Key(INSTALL_NAMESPACE, SECRET_NAME), {"data": {"tls.crt": None, "tls.key": None}})

    cache = WatchCache(client, Selection(SECRET, INSTALL_NAMESPACE), CLOCK)
    changed = asyncio.Event()
    cache.subscribe(lambda *_unused: changed.set())
    running = asyncio.create_task(cache.run())
    async with asyncio.timeout(20):
        while not (raw := cache.get(Key(INSTALL_NAMESPACE, SECRET_NAME))) or b"tls.crt" not in raw:
            changed.clear()
            await changed.wait()
    running.cancel()

    assert json.loads(raw)["data"]["tls.crt"] != secret["data"]["tls.crt"]
    await put(client, vm, "start", '{"dryRun": ["All"]}')


async def test_deleted_secrets_are_recreated_while_the_old_pair_stays_in_use(
    installed: Installed, client: Client, vm: dict[str, Any]
) -> None:
    """With the rights of virt-controller's account, which may create these two Secrets and no others."""
    authority, serving = Key(INSTALL_NAMESPACE, AUTHORITY_SECRET), Key(INSTALL_NAMESPACE, SECRET_NAME)
    old = {key: await client.get(SECRET, key) for key in (authority, serving)}
    for key, secret in old.items():
        await client.delete(SECRET, key, uid=secret["metadata"]["uid"])

    cache = WatchCache(client, Selection(SECRET, INSTALL_NAMESPACE), CLOCK)
    changed = asyncio.Event()
    cache.subscribe(lambda *_unused: changed.set())
    running = asyncio.create_task(cache.run())
    async with asyncio.timeout(20):
        while not (raw := cache.get(authority)) or b"ca.crt" not in raw or not cache.get(serving):
            changed.clear()
            await changed.wait()
    running.cancel()

    bundles = [split_bundle(base64.b64decode(secret["data"]["ca.crt"])) for secret in (old[authority], json.loads(raw))]
    assert bundles[0][0] in bundles[1][1:], "what is served is still trusted"
    assert bundles[0][0] != bundles[1][0]
    await put(client, vm, "start", '{"dryRun": ["All"]}')
    async with a_client(installed.controller) as controller:
        again = await controller.ensure(SECRET, authority)
        assert again["data"] == json.loads(raw)["data"], "one that exists stays as it is"
        with pytest.raises(Forbidden):
            await controller.ensure(SECRET, Key(INSTALL_NAMESPACE, "another"))
        with pytest.raises(Forbidden):
            await controller.create(SECRET, INSTALL_NAMESPACE, {"metadata": {"name": AUTHORITY_SECRET}})


async def test_the_spec_of_a_vmi_cannot_be_changed_by_users(installed: Installed, client: Client) -> None:
    body = a_vm()["spec"]["template"] | {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "alone", "namespace": "default"},
    }
    vmi = await client.create(VIRTUAL_MACHINE_INSTANCE, "default", body)
    assert vmi["metadata"]["finalizers"]

    change = {"spec": {"domain": {"memory": {"guest": "128Mi"}}}}
    for version in ("v1", "v1alpha3"):
        resource = Resource("kubevirt.io", version, "virtualmachineinstances", "VirtualMachineInstance")
        with pytest.raises(ApiError, match=r"spec\.domain\.memory\.guest: does not change"):
            await client.patch(resource, key_of(vmi), change)
    async with a_client(installed.controller) as controller:
        changed = await controller.patch(VIRTUAL_MACHINE_INSTANCE, key_of(vmi), change)
    assert changed["spec"]["domain"]["memory"]["guest"] == "128Mi"
    with pytest.raises(ApiError):
        await client.patch(VIRTUAL_MACHINE_INSTANCE, key_of(vmi), {"status": {"phase": "Failed"}}, subresource="status")
