# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole virt-handler process: what it watches, when it reconciles, and when its node is schedulable."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import parse_qs

import aiohttp
import pytest
from kubevirt_api.names import CONTROL_PLANE_IMAGE, CONTROL_PLANE_ROLE, LAUNCHER_ROLE, ROLE, SCHEDULABLE
from msgspec.structs import replace as replace_struct

from controlplane.api.objects.lease import lease_name
from controlplane.api.objects.resources import (
    API_SERVICE,
    EVENT,
    KUBEVIRT,
    LEASE,
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
    Resource,
)
from controlplane.engine.clock import SystemClock
from controlplane.kube.lease import Heartbeat
from controlplane.links.handler import (
    PATH,
    Answer,
    Done,
    Guest,
    Inquire,
    NotDone,
    Power,
    Question,
    encode,
    read_answer,
    server_name,
)
from controlplane.links.node.messages import HostCpu, KvmFinding, NodeState
from controlplane.tls.certificates import KeyPair, Subject, issue
from controlplane.tls.contexts import VIRT_API_CLIENT, client_context, role_uri
from controlplane.virt_handler import __main__ as virt_handler
from controlplane.virt_handler.node.labels import KVM_USABLE
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi.world import World
from tests.controlplane.asked_over_http import accepts_tls_1_2, fetch, free_port
from tests.controlplane.kube.late_api import settle
from tests.controlplane.virt_api.served import DAY, an_authority, now
from tests.controlplane.virt_handler.builders import NODE as NAME
from tests.controlplane.virt_handler.builders import POD_UID, VMI_UID
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS
from tests.controlplane.virt_handler.wired import INSTALL_NAMESPACE, NODE_KEY, WEB, Stage

KVM, TUN = "devices.kubevirt.io/kvm", "devices.kubevirt.io/tun"
GUEST = Guest(NAME, VMI_UID, POD_UID)


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """Return the keys of all reconciles."""
    keys: list[Key] = []
    observe = VmiReconciler.observe

    def looking(self: VmiReconciler, key: Key) -> World | None:
        keys.append(key)
        return observe(self, key)

    monkeypatch.setattr(VmiReconciler, "observe", looking)
    return keys


@pytest.mark.parametrize(
    ("resource", "where"),
    [(POD, ""), (VIRTUAL_MACHINE_INSTANCE, "status.nodeName"), (VIRTUAL_MACHINE_INSTANCE, "targetNode")],
    ids=["launchers", "machines", "machines that come"],
)
async def test_nothing_is_reconciled_before_all_lists_are_complete(
    launcher: Stage, observed: list[Key], resource: Resource, where: str
) -> None:
    """A Pod that is not listed yet looks like a removed one, and its guest like an orphan."""
    launcher.api.hold("list", resource, where=where)
    async with launcher.running():
        await settle()
        assert observed == []
        launcher.api.release()
        await launcher.until(lambda: launcher.phase == "Running")


async def test_it_watches_objects_of_its_own_node_only(stage: Stage) -> None:
    """The selectors use fields that no user can write. A label would let a tenant choose another virt-handler."""
    async with stage.running():
        await settle()
    selected = {
        path: sorted(
            "&".join(sorted(f"{name}:{value}" for name, (value,) in parse_qs(query).items() if "Selector" in name))
            for query in queries
        )
        for path, queries in stage.api.watched().items()
    }
    assert selected == {
        "/apis/kubevirt.io/v1/virtualmachineinstances": [
            f"fieldSelector:status.migrationState.targetNode={NAME}",
            f"fieldSelector:status.nodeName={NAME}",
        ],
        "/api/v1/pods": [f"fieldSelector:spec.nodeName={NAME}&labelSelector:{ROLE}={LAUNCHER_ROLE}"],
        f"/apis/kubevirt.io/v1/namespaces/{INSTALL_NAMESPACE}/kubevirts": [""],
        "/apis/apiregistration.k8s.io/v1/apiservices": ["fieldSelector:metadata.name=v1.subresources.kubevirt.io"],
    }


async def test_a_start_is_written_once_while_the_watch_lags(launcher: Stage) -> None:
    """virt-handler reads its own writes. Waiting for the watch would repeat the write and meet a conflict."""
    launcher.api.hold("watch", VIRTUAL_MACHINE_INSTANCE)
    async with launcher.running():
        await launcher.until(lambda: launcher.api.writes("/events"))
        await settle()
    assert len(launcher.api.writes("/virtualmachineinstances/web")) == 1
    event = launcher.api.only(EVENT)
    assert event is not None
    assert (event["reason"], event["source"]) == ("Started", {"component": "virt-handler", "host": NAME})


async def test_the_node_is_schedulable_while_virt_handler_runs(stage: Stage) -> None:
    stage.api.set(NODE, NODE_KEY, {"status": {"allocatable": {TUN: "1"}}})
    async with stage.running():
        await settle()
        assert "labels" not in stage.node["metadata"]
        await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True), (TUN,), (TUN,), (TUN,)))
        await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == "true")
        assert stage.api.find(LEASE, Key(INSTALL_NAMESPACE, lease_name(NAME))) is not None
    assert stage.node["metadata"]["labels"][SCHEDULABLE] == "false"


async def test_the_node_is_unschedulable_before_the_kubelet_registers_its_devices(stage: Stage) -> None:
    """The Node may still show the devices from before the kubelet's restart."""
    stage.api.set(NODE, NODE_KEY, {"status": {"allocatable": {TUN: "1"}}})
    async with stage.running():
        offered = NodeState(KvmFinding(is_usable=True), (TUN,), (TUN,))
        await stage.virt_node.offer.update(offered)
        await settle()
        assert "labels" not in stage.node["metadata"]
        assert stage.handler is not None
        assert stage.handler._registration.missing == {TUN}
        await stage.virt_node.offer.update(replace_struct(offered, registered=(TUN,)))
        await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == "true")


async def test_the_label_follows_the_kvm_finding_of_a_restarted_virt_node(
    stage: Stage,
) -> None:
    stage.api.set(NODE, NODE_KEY, {})
    async with stage.running():
        for is_usable in (True, False):
            await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable)))
            label = "true" if is_usable else "false"
            await stage.until(lambda label=label: stage.node["metadata"].get("labels", {}).get(KVM_USABLE) == label)
        await settle()
        written = len(stage.api.writes(f"/nodes/{NAME}"))
        stage.be_heard_again()
        await settle()
        assert len(stage.api.writes(f"/nodes/{NAME}")) == written


async def test_deprecated_machine_types_are_a_metric(stage: Stage) -> None:
    port = free_port()
    stage.settings = replace(stage.settings, port=port)
    async with stage.running():
        cpu = HostCpu(model="EPYC", deprecated_machines=("pc-q35-4.2",))
        await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True), cpu=cpu))
        await settle()
        page = (await fetch(f"https://127.0.0.1:{port}/metrics"))[1]
    assert f'kubevirt_node_deprecated_machine_types{{machine_type="pc-q35-4.2",node="{NAME}"}} 1.0' in page


async def test_a_device_registered_later_does_not_restart_the_node_setup(stage: Stage) -> None:
    """virt-handler is not ready until the Node has its devices, and an upgrade waits for that."""
    stage.api.set(NODE, NODE_KEY, {"status": {"allocatable": {TUN: "1"}}})
    async with stage.running():
        offered = NodeState(KvmFinding(is_usable=True), (TUN,), (TUN,), (TUN,))
        await stage.virt_node.offer.update(offered)
        await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == "true")
        await settle()
        before = len(stage.api.seen)
        await stage.virt_node.offer.update(replace_struct(offered, registered=(KVM, TUN)))
        await settle()
        assert [path for _method, path, *_rest in stage.api.seen[before:] if f"/nodes/{NAME}" in path] == []


async def test_the_image_annotation_is_written_once_virt_handler_serves(stage: Stage) -> None:
    """Otherwise migrations would use the virt-handler that is being replaced."""
    stage.settings = replace(stage.settings, image="plane:2")
    stage.api.set(NODE, NODE_KEY, {"metadata": {"annotations": {CONTROL_PLANE_IMAGE: "plane:1"}}})
    async with stage.running():
        await settle()
        assert stage.node["metadata"]["annotations"] == {CONTROL_PLANE_IMAGE: "plane:1"}
        await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True)))
        await stage.until(lambda: stage.node["metadata"]["annotations"][CONTROL_PLANE_IMAGE] == "plane:2")


async def test_a_control_plane_node_is_unschedulable(stage: Stage) -> None:
    """A tenant can set tolerations."""
    taints = [{"key": CONTROL_PLANE_ROLE, "effect": "NoSchedule"}]
    stage.api.set(NODE, NODE_KEY, {"metadata": {"labels": {CONTROL_PLANE_ROLE: ""}}, "spec": {"taints": taints}})
    async with stage.running():
        await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True)))
        await stage.until(lambda: SCHEDULABLE in stage.node["metadata"]["labels"])
        assert stage.node["metadata"]["labels"][SCHEDULABLE] == "false"


async def test_it_is_ready_with_complete_caches_and_virt_node(stage: Stage) -> None:
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    stage.settings = replace(stage.settings, port=port)
    stage.api.set(NODE, NODE_KEY, {"status": {"allocatable": {TUN: "1"}}})
    stage.api.hold("list", POD)
    stage.api.hold("list", VIRTUAL_MACHINE_INSTANCE)
    async with stage.running():
        await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True), (TUN,), (TUN,), (TUN,)))
        await stage.until(lambda: "labels" in stage.node["metadata"])
        assert await fetch(f"{url}/readyz") == (503, "waiting for VMIs, incoming VMIs, Pods\n")
        stage.api.release()
        await settle()
        assert await fetch(f"{url}/readyz") == (200, "ok\n")
        assert "virtops_launchers 0.0" in (await fetch(f"{url}/metrics"))[1]
        await stage.virt_node.kill()
        assert await fetch(f"{url}/readyz") == (503, "waiting for virt-node\n")


async def test_the_configuration_sets_log_level_and_tls(stage: Stage) -> None:
    root = logging.getLogger()
    before, port = root.level, free_port()
    stage.settings = replace(stage.settings, port=port, log_level="ERROR")
    verbosity = {"virtHandler": 2, "nodeVerbosity": {NAME: 4}}
    tls, developer = {"minTLSVersion": "VersionTLS13"}, {"logVerbosity": verbosity}
    spec = {"configuration": {"developerConfiguration": developer, "tlsConfiguration": tls}}
    stage.api.set(KUBEVIRT, Key(INSTALL_NAMESPACE, "kubevirt"), {"spec": spec})
    stored = stage.api.find(KUBEVIRT, Key(INSTALL_NAMESPACE, "kubevirt"))
    assert stored is not None
    try:
        async with stage.running():
            await stage.until(lambda: root.level == logging.DEBUG)
            assert not await accepts_tls_1_2(port)
            body = json.loads((await fetch(f"https://127.0.0.1:{port}/healthz"))[1])
    finally:
        root.setLevel(before)
    assert body == {"config-resource-version": stored["metadata"]["resourceVersion"]}


async def test_virt_api_gets_answers_once_the_client_ca_is_read(launcher: Stage) -> None:
    refused = NotDone("refused", "VMI does not have guest agent connected")
    answers: tuple[tuple[Question, Answer], ...] = (
        (Power(GUEST, "pause"), Done()),
        (Inquire(GUEST, "guestosinfo"), refused),
    )
    launcher.settings = replace(launcher.settings, endpoint_port=free_port())
    authority = an_authority("ours")
    caller = issue(
        authority, Subject("virt-api", "client", (), role_uri(INSTALL_NAMESPACE, VIRT_API_CLIENT)), now(), DAY
    )
    async with launcher.running():
        await launcher.until(lambda: launcher.phase == "Running")
        with pytest.raises(aiohttp.ClientError):
            await _ask(launcher, caller, answers[0][0])
        bundle = base64.b64encode(authority.certificate).decode()
        launcher.api.set(API_SERVICE, Key("", "v1.subresources.kubevirt.io"), {"spec": {"caBundle": bundle}})
        await settle()
        for question, answer in answers:
            assert await _ask(launcher, caller, question) == answer


async def _ask(stage: Stage, caller: KeyPair, question: Question) -> Answer:
    context = client_context(stage.pair.der, caller.certificate, caller.key)
    url, name = f"https://127.0.0.1:{stage.settings.endpoint_port}{PATH}", server_name(NAME)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(url, data=encode(question), server_hostname=name) as response,
    ):
        return read_answer(await response.read())


class LaterClock(SystemClock):
    """The system clock plus the time for which the host was suspended."""

    suspended = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.suspended


@dataclass
class Host:
    """A suspended host, as its processes see it."""

    clock: LaterClock
    due: asyncio.Event
    """Set when the next heartbeat is due."""

    def wake_up(self, seconds: float) -> None:
        self.clock.suspended += seconds
        self.due.set()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(LaterClock(), asyncio.Event())

    async def until_due(_seconds: float) -> None:
        await host.due.wait()
        host.due.clear()

    monkeypatch.setattr(virt_handler, "SystemClock", lambda: host.clock)
    monkeypatch.setattr(virt_handler, "Heartbeat", partial(Heartbeat, sleep=until_due))
    return host


async def until_schedulable_is(stage: Stage, value: str) -> None:
    """Wait until the schedulable label has this value and stays."""
    await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == value)
    await settle()
    assert stage.node["metadata"]["labels"][SCHEDULABLE] == value


async def offer(stage: Stage) -> None:
    await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True)))


@pytest.fixture
def offering(launcher: Stage) -> Stage:
    launcher.api.set(NODE, NODE_KEY, {})
    return launcher


async def test_a_recovering_node_is_unschedulable_and_starts_guests_right_after(offering: Stage) -> None:
    """The next label check is a minute away, and no event enqueues the waiting VMIs."""
    offering.api.hold_get(WEB)
    async with offering.running():
        await offer(offering)
        await until_schedulable_is(offering, "false")
        assert offering.phase == "Scheduled"
        offering.api.release()
        await until_schedulable_is(offering, "true")
        await offering.until(lambda: offering.phase == "Running")


async def test_a_node_is_not_recovered_before_its_pods_are_listed(offering: Stage) -> None:
    """Without known launchers the recovery has no question to ask and would end at once."""
    offering.api.hold("list", POD)
    async with offering.running():
        await offer(offering)
        await until_schedulable_is(offering, "false")
        offering.api.release()
        await until_schedulable_is(offering, "true")


async def test_a_suspended_node_recovers_at_its_next_heartbeat(offering: Stage, host: Host) -> None:
    """A timer for the end of the Lease would fire late, by the whole suspension."""
    async with offering.running():
        await offer(offering)
        await until_schedulable_is(offering, "true")
        await offering.until(lambda: offering.phase == "Running")
        offering.api.hold_get(WEB)
        host.wake_up(LEASE_SECONDS + 1)
        await until_schedulable_is(offering, "false")
        offering.api.release()
        await until_schedulable_is(offering, "true")
