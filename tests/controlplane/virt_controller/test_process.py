# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole process on a fake API server: only the leader writes, from complete caches, and every controller works."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from kubevirt_api.names import EXCLUDED_NODES, KVM_DEVICE, QUARANTINED, SCHEDULABLE, VM_FINALIZER

from controlplane.api.objects.data_volume import DEFINITION
from controlplane.api.objects.lease import lease_name
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    DATA_VOLUME,
    EVENT,
    KUBEVIRT,
    LEASE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    Key,
    Resource,
)
from controlplane.api.version import VERSION
from controlplane.engine.runner import Runner
from controlplane.kube.client import object_path
from controlplane.kube.leader import ElectionTiming
from controlplane.virt_controller import process
from controlplane.virt_controller.certificates.observe import MUTATING
from controlplane.virt_controller.workload_update.controller import GATHER_SECONDS
from tests.controlplane.asked_over_http import accepts_tls_1_2, fetch, free_port
from tests.controlplane.kube.fake_api import Json
from tests.controlplane.kube.late_api import LateApi
from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_controller.data_volumes import DISK, SPEC
from tests.controlplane.virt_controller.running import INSTALL_NAMESPACE, SERVED, SETTINGS, WEB, running
from tests.controlplane.virt_controller.watched_cluster import Enqueued

WATCHED = (
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    POD,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    KUBEVIRT,
    LEASE,
)
ONE, TWO = Key("", "node-1"), Key("", "node-2")
GUEST: Json = {"domain": {"memory": {"guest": "64Mi"}}}
WATCH_PATH = re.compile(
    r"/apis?(/(?P<group>[^/]+\.[^/]+|apps))?/v[^/]+(/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)"
)
NAMED = re.compile(r"fieldSelector=metadata\.name%3D([^&]+)")
Watched = tuple[str, str, str, str]
"""API group, namespace, plural, and the name of the only object; "" for all."""
LONG_AGO = "20200101T000000Z"


def a_vm(guest: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"finalizers": [VM_FINALIZER], "generation": 1},
        "spec": {"runStrategy": "Always", "template": {"spec": guest or GUEST}, **spec},
    }


def a_node(**labels: str) -> Json:
    return {"metadata": {"labels": {SCHEDULABLE: "true", **labels}}}


@pytest.fixture
def api() -> LateApi:
    """With a webhook configuration, so that the leader reads the certificates."""
    api = LateApi()
    api.set(MUTATING, Key("", "virt-api-mutator"), {"webhooks": []})
    return api


@pytest.mark.parametrize("resource", WATCHED, ids=lambda resource: resource.plural)
async def test_nothing_is_written_before_every_list_is_complete(api: LateApi, resource: Resource) -> None:
    """An object that is not listed yet looks absent: a VMI would get a second Pod."""
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    api.hold("list", resource)
    async with running(api) as virt_controller:
        await virt_controller.until_leading()
        await virt_controller.settle()
        assert api.writes() == []
        api.release()
        await virt_controller.until(lambda: api.only(POD))


async def test_a_former_leader_writes_nothing(api: LateApi, caplog: pytest.LogCaptureFixture) -> None:
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.writes("secrets"))  # the leader works
        await virt_controller.settle()
        before = api.writes()
        virt_controller.clock.suspend(ElectionTiming().renew_deadline_seconds + 0.5)
        api.set(VIRTUAL_MACHINE, WEB, a_vm())
        await virt_controller.until(lambda: _refusals(caplog) or api.writes() != before)
        assert (api.writes(), _refusals(caplog)) == (before, ["cannot write: this process is not the leader any more"])


def _refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors that ended reconciles."""
    return [
        record.error
        for record in caplog.records
        if record.name == "controlplane.engine.runner" and hasattr(record, "error")
    ]


async def test_a_pod_is_created_and_deleted_once_while_the_watch_of_pods_is_late(api: LateApi) -> None:
    """Controllers read their own writes: the watch does not show the Pod yet."""
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    api.hold("watch", POD)
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.only(POD))
        vmi = api.find(VIRTUAL_MACHINE_INSTANCE, WEB)
        assert vmi is not None
        vmi["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        api.set(VIRTUAL_MACHINE_INSTANCE, WEB, vmi)
        await virt_controller.until(lambda: any("DELETE" in write for write in api.writes("/pods")))
        methods = [method for method, path, *_rest in api.seen if "/namespaces/default/pods" in path]
        assert methods == ["POST", "DELETE"]


async def test_a_pod_follows_settings_configuration_and_quarantine(api: LateApi) -> None:
    developer = {"useEmulation": True, "logVerbosity": {"virtLauncher": 5}}
    emulated = {"configuration": {"developerConfiguration": developer}}
    api.set(KUBEVIRT, Key(INSTALL_NAMESPACE, "kubevirt"), {"spec": emulated})
    api.set(NODE, ONE, a_node(**{QUARANTINED: "maintenance"}))
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.only(POD))
    pod = api.only(POD)
    assert pod is not None
    (compute,) = pod["spec"]["containers"]
    assert (compute["image"], KVM_DEVICE in compute["resources"]["limits"]) == (SETTINGS.launcher_image, False)
    assert compute["env"] == [{"name": "LOG_LEVEL", "value": "DEBUG"}]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["metadata"]["annotations"][EXCLUDED_NODES] == ONE.name


async def test_events_are_written(api: LateApi) -> None:
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.writes("/events"))
    event = api.only(EVENT)
    assert event is not None
    assert (event["reason"], event["source"]["component"]) == ("SuccessfulCreate", "virt-controller")
    assert event["reportingInstance"] == SETTINGS.pod_name


async def test_a_warning_about_a_pod_reaches_the_vmi(api: LateApi) -> None:
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.only(POD))
        await virt_controller.settle()
        pod = api.only(POD)
        assert pod is not None
        about = {"kind": "Pod", "namespace": "default", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        api.set(
            EVENT,
            Key("default", "said"),
            {"type": "Warning", "involvedObject": about, "reason": "FailedMount", "message": "no such Secret"},
        )
        await virt_controller.until(
            lambda: b"no such Secret" in msgspec.json.encode(api.find(VIRTUAL_MACHINE_INSTANCE, WEB))
        )


async def test_a_failed_ping_of_the_agent_is_an_event_of_the_vmi(api: LateApi) -> None:
    """The kubelet says so of the Pod. Another probe of the same guest is no ping."""
    ping, port = {"guestAgentPing": {}}, {"tcpSocket": {"port": 22}}
    api.set(VIRTUAL_MACHINE, WEB, a_vm({**GUEST, "livenessProbe": ping, "readinessProbe": port}))
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.only(POD))
        await virt_controller.settle()
        pod, vmi = api.only(POD), api.find(VIRTUAL_MACHINE_INSTANCE, WEB)
        assert pod is not None
        assert vmi is not None
        uid = pod["metadata"]["uid"]
        status = {**vmi["status"], "phase": "Running", "activePods": {uid: "node-1"}, "nodeName": "node-1"}
        api.set(VIRTUAL_MACHINE_INSTANCE, WEB, {**vmi, "status": status})
        await virt_controller.settle()
        about = {"kind": "Pod", "namespace": "default", "name": pod["metadata"]["name"], "uid": uid}
        event = {"type": "Warning", "involvedObject": about, "reason": "Unhealthy"}
        for name, message in (("port", "Readiness probe failed: refused"), ("ping", "Liveness probe failed: silent")):
            api.set(EVENT, Key("default", name), {**event, "message": message})
        await virt_controller.settle()
        written = [body for body in api.objects.values() if body.get("reason") == "GuestAgentPingFailed"]
    assert [(body["type"], body["involvedObject"]["kind"]) for body in written] == [
        ("Warning", "VirtualMachineInstance")
    ]


async def test_a_vm_waits_for_its_data_volume_once_cdi_is_installed(api: LateApi) -> None:
    machine = a_vm({**GUEST, "volumes": [DISK]}, dataVolumeTemplates=[{"metadata": {"name": "disk"}, "spec": SPEC}])
    api.set(VIRTUAL_MACHINE, WEB, machine)
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.writes("/virtualmachines"))
        api.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
        await virt_controller.until(lambda: api.only(DATA_VOLUME))
        data_volume = api.only(DATA_VOLUME)
        assert data_volume is not None
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        owner = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "disk", "controller": True}
        owners = [{**owner, "uid": data_volume["metadata"]["uid"]}]
        api.set(
            PERSISTENT_VOLUME_CLAIM,
            Key("default", "disk"),
            {"metadata": {"ownerReferences": owners}, "spec": claim, "status": {"phase": "Bound"}},
        )
        await virt_controller.settle()
        assert not api.writes("/virtualmachineinstances")
        api.set(DATA_VOLUME, Key("default", "disk"), {**data_volume, "status": {"phase": "Succeeded"}})
        await virt_controller.until(lambda: api.only(POD))


async def test_a_node_whose_lease_expired_is_not_schedulable(api: LateApi) -> None:
    lease = {"spec": {"leaseDurationSeconds": 2, "renewTime": "2026-01-01T00:00:00Z"}}
    api.set(LEASE, Key(INSTALL_NAMESPACE, lease_name(ONE.name)), lease)
    api.set(NODE, ONE, a_node())
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: api.writes("secrets"))
        await virt_controller.settle()
        virt_controller.clock.suspend(3)
        api.set(NODE, TWO, a_node())  # this change runs what is due; the timer of the fake clock does not
        await virt_controller.until(lambda: not _is_schedulable(api, ONE))
        assert _is_schedulable(api, TWO)


def _is_schedulable(api: LateApi, node: Key) -> bool:
    body = api.find(NODE, node)
    return body is not None and body["metadata"]["labels"][SCHEDULABLE] == "true"


async def test_the_kubevirt_object_is_deployed(api: LateApi) -> None:
    key = Key(INSTALL_NAMESPACE, "kubevirt")
    api.set(KUBEVIRT, key, {"spec": {}})
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: (api.find(KUBEVIRT, key) or {}).get("status"))
    kubevirt = api.find(KUBEVIRT, key)
    assert kubevirt is not None
    assert (kubevirt["status"]["phase"], kubevirt["status"]["operatorVersion"]) == ("Deployed", VERSION)


def rbac_rules(*verbs: str) -> set[Watched]:
    """Return what the role's manifests let virt-controller read with all of these verbs."""
    return {
        (group, manifest["metadata"].get("namespace", ""), plural, name)
        for manifest in render("rbac-controller.yaml.j2", control_plane_namespace=INSTALL_NAMESPACE)
        for rule in manifest.get("rules", ())
        if set(verbs) <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def as_rule(path: str, query: str) -> Watched:
    """Return the rule that a request needs to be allowed."""
    group, namespace, plural = WATCH_PATH.fullmatch(path).group("group", "namespace", "plural")  # type: ignore[union-attr]
    name = NAMED.search(query)
    return group or "", namespace or "", plural, name[1] if name else ""


async def test_the_rbac_rules_allow_exactly_the_watches(api: LateApi) -> None:
    """RBAC would refuse any other, such as one of all Leases."""
    api.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
    async with running(api) as virt_controller:
        await virt_controller.until_leading()
        await virt_controller.settle()
    watched = {as_rule(path, query) for path, queries in api.watched().items() for query in queries}
    assert watched == rbac_rules("list", "watch") == rbac_rules("list") | rbac_rules("watch")
    assert "labelSelector=kubevirt.io%3Dvirt-launcher" in str(api.watched()["/api/v1/pods"])


async def test_a_replica_is_ready_when_every_list_is_complete(api: LateApi) -> None:
    """Leader or not; the body of /readyz names the missing list."""
    lease = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00Z"}}
    api.set(LEASE, Key(INSTALL_NAMESPACE, "virt-controller"), lease)
    api.set(NODE, ONE, a_node(**{QUARANTINED: "maintenance"}))
    api.hold("list", NODE)
    tls = {"spec": {"configuration": {"tlsConfiguration": {"minTLSVersion": "VersionTLS13"}}}}
    api.set(KUBEVIRT, Key(INSTALL_NAMESPACE, "kubevirt"), tls)
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    async with running(api, replace(SETTINGS, port=port)) as virt_controller:
        await virt_controller.settle()
        assert await fetch(f"{url}/readyz") == (503, "waiting for nodes\n")
        assert not await accepts_tls_1_2(port)
        api.release()
        await virt_controller.settle()
        assert await fetch(f"{url}/readyz") == (200, "ok\n")
        shown = (await fetch(f"{url}/metrics"))[1]
    metrics = {name: value for name, _mark, value in (line.rpartition(" ") for line in shown.splitlines())}
    assert metrics["kubevirt_virt_controller_leading_status"] == "0.0"
    assert metrics["kubevirt_virt_controller_ready_status"] == "1.0"
    assert metrics["virtops_quarantined_nodes"] == "1.0"


@pytest.mark.parametrize("leads", [True, False])
async def test_only_the_leader_counts_outdated_vmis(api: LateApi, leads: bool) -> None:
    """Both replicas are scraped, and dashboards show the sum."""
    if not leads:
        lease = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00Z"}}
        api.set(LEASE, Key(INSTALL_NAMESPACE, "virt-controller"), lease)
    for name, image in (("old", "launcher:0"), ("new", SETTINGS.launcher_image)):
        status = {"phase": "Running", "nodeName": "node-1", "launcherContainerImageVersion": image}
        api.set(VIRTUAL_MACHINE_INSTANCE, Key("default", name), {"spec": {}, "status": status})
    port = free_port()
    async with running(api, replace(SETTINGS, port=port)) as virt_controller:
        if leads:
            await virt_controller.until_leading()
        await virt_controller.settle()
        shown = (await fetch(f"https://127.0.0.1:{port}/metrics"))[1]
    assert f"kubevirt_vmi_number_of_outdated {1.0 if leads else 0.0}" in shown.splitlines()


async def test_reconciles_and_phase_transitions_are_counted(api: LateApi) -> None:
    api.set(VIRTUAL_MACHINE, WEB, a_vm())
    port = free_port()
    async with running(api, replace(SETTINGS, port=port)) as virt_controller:
        await virt_controller.until(lambda: api.only(POD))
        await virt_controller.settle()
        shown = (await fetch(f"https://127.0.0.1:{port}/metrics"))[1]
    assert 'virtops_reconcile_passes_total{controller="vm",result="ok"}' in shown
    assert 'kubevirt_vmi_phase_transition_time_from_creation_seconds_count{phase="Scheduling"}' in shown


# what the API server sends arrives at the runners

KUBEVIRT_KEY = Key(INSTALL_NAMESPACE, "kubevirt")
DELAYS: dict[str, float] = {}


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> Enqueued:
    """The controllers and keys that were enqueued since the set was cleared. Nothing is reconciled."""
    recorded: Enqueued = set()

    class Recording(Runner[Any, Any, Any]):
        def add(self, key: Key, *, after: float = 0.0) -> None:
            recorded.add((self.name, str(key)))
            DELAYS[self.name] = after

        async def run(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(process, "Runner", Recording)
    return recorded


async def test_the_end_of_data_volume_support_enqueues_their_users(enqueued: Enqueued) -> None:
    api = LateApi()
    api.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
    api.set(VIRTUAL_MACHINE, WEB, {"spec": {"template": {"spec": {"volumes": [DISK]}}}})
    api.set(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": {"volumes": [DISK]}})
    expected = {("vm", "default/web"), ("vmi", "default/web")}
    async with running(api) as virt_controller:
        await virt_controller.settle()
        enqueued.clear()
        api.drop(object_path(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION)))
        await virt_controller.until(lambda: enqueued >= expected)
        await virt_controller.settle()
    assert enqueued == expected


async def test_workload_updates_are_delayed(enqueued: Enqueued) -> None:
    api = LateApi()
    api.set(KUBEVIRT, KUBEVIRT_KEY, {"spec": {}})
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: ("workload-update", str(KUBEVIRT_KEY)) in enqueued)
    assert (DELAYS["workload-update"], DELAYS["kubevirt"]) == (GATHER_SECONDS, 0.0)


async def test_a_new_leader_enqueues_the_quarantine(enqueued: Enqueued) -> None:
    api = LateApi()
    assert api.find(NODE, ONE) is None, "no list enqueues the judgement"
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: ("quarantine", "") in enqueued)
