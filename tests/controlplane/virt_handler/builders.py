# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builders of VMIs, Pods, launchers and worlds, so that a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

from libvirt_domain.namespace import NAMESPACE

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.observed import Identity, Observed
from controlplane.domain.state import Life, State
from controlplane.links.node.messages import PodInterface
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus, Look, Traces, World

NODE, OTHER = "node-1", "node-2"
VMI_UID, POD_UID = "0000aaaa-1111-2222-3333-444444444444", "bbbb0000-1111-2222-3333-444444444444"
NOW = 1_700_000_000.0
ETH0 = PodInterface(("10.244.0.7", "fd00::7"), 1450)

RUNNING = State(Life.RUNNING, "booted")
OFF = State(Life.SHUT_OFF, "shutdown")


def a_vmi(phase: str = "Scheduled", *, node: str = NODE, deleting: bool = False, **spec: Any) -> VirtualMachineInstance:
    return decode_vmi(vmi_object(phase, node=node, deleting=deleting, **spec))


def paused_vmi(reason: str = "PausedByUser", status: str = "True") -> VirtualMachineInstance:
    """Return a VMI with a Paused condition. The reason says who paused it."""
    running = vmi_object("Running")
    running["status"]["conditions"] = [{"type": "Paused", "status": status, "reason": reason}]
    return decode_vmi(running)


def vmi_object(phase: str = "Scheduled", *, node: str = NODE, deleting: bool = False, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": "web",
        "namespace": "default",
        "uid": VMI_UID,
        "resourceVersion": "7",
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: dict[str, Any] = {"phase": phase, "epoch": 1, "memory": {"guestAtBoot": "128Mi"}}
    if phase not in ("", "Pending", "Scheduling"):
        status |= {"nodeName": node, "activePods": {POD_UID: node}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": {
            "domain": {
                "memory": {"guest": "128Mi"},
                "firmware": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"},
                "devices": {
                    "interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:99"}],
                    "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                },
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [{"name": "root", "containerDisk": {"image": "guest:1"}}],
            **spec,
        },
        "status": status,
    }


def pod_object(
    uid: str = POD_UID, *, phase: str = "Running", owner_uid: str = VMI_UID, deleting: bool = False, **status: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": f"virt-launcher-web-{uid[:4]}",
        "namespace": "default",
        "uid": uid,
        "resourceVersion": "3",
        "labels": {"kubevirt.io": "virt-launcher"},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": "web",
                "uid": owner_uid,
                "controller": True,
            }
        ],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {"nodeName": NODE}, "status": {"phase": phase, **status}}


def a_pod(uid: str = POD_UID, **fields: Any) -> Pod:
    return decode(pod_object(uid, **fields), Pod)


def ended(exit_code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    """Return the status of a Pod whose launcher has ended."""
    state = {"terminated": {"exitCode": exit_code, "message": message, "reason": reason}}
    return {"containerStatuses": [{"name": "compute", "state": state}]}


def domain_text() -> str:
    """Return the XML by which libvirt describes a domain of ours."""
    words = f'namespace="default" name="web" uid="{VMI_UID}" pod="{POD_UID}" epoch="1" grace="30"'
    metadata = f'<metadata><vmi xmlns="{NAMESPACE}" {words}/></metadata>'
    return f"<domain type='qemu'>{metadata}<features><acpi/></features></domain>"


def observed(
    *, uid: str = VMI_UID, pod_uid: str = POD_UID, grace: int = 30, acpi: bool = True, epoch: int = 1
) -> Observed:
    identity = Identity("default", "web", uid, pod_uid, epoch, grace)
    return Observed(identity, is_kvm=False, machine="pc-q35-10.0", has_acpi=acpi)


def seen(state: State | None = RUNNING, **fields: Any) -> LauncherStatus:
    """Return the status of a connected launcher."""
    defaults: dict[str, Any] = {
        "is_here": True,
        "is_admitted": True,
        "is_connected": True,
        "state": state,
        "observed": None if state is None else observed(),
        "is_network_ready": True,
        "interface": ETH0,
    }
    return LauncherStatus(**{**defaults, **fields})


def a_launcher(
    status: LauncherStatus | None = None, pod: Pod | None = None, *, gone: bool = False, **fields: Any
) -> Launcher:
    return Launcher(
        pod or a_pod(), is_gone=gone, status=status or LauncherStatus(is_here=True, is_admitted=True), **fields
    )


def a_look(
    *, directory: bool = False, processes: int = 0, emulators: int = 0, at: float = 1000.0, count: int = 1
) -> Look:
    """Return what a search of the node for traces of a Pod found. The default is nothing."""
    return Look(Traces(directory, processes, emulators), at=at, count=count)


def a_world(vmi: VirtualMachineInstance | None, *launchers: Launcher, **fields: Any) -> World:
    return World(node=NODE, vmi=vmi, launchers=launchers, **{"now": NOW, "monotonic": 1000.0, **fields})
