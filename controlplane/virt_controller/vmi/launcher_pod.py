# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher Pod of a VMI: pure, from VMI, attempt and configuration to a manifest.

It complies with Pod Security's `restricted` profile: user 107, no capabilities, read-only root, no token, no access to
the host. Its only sysctl, a safe one, lets the DHCP server bind its port without a capability.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from kubevirt_api import names
from kubevirt_api.condition_types import UNPAUSED

from controlplane.api.launch_plan import NETWORK_ANNOTATION, PLAN_ANNOTATION, render_network, render_plan
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.decode import encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.pod import COMPUTE
from controlplane.api.objects.resources import POD
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from controlplane.api.pod_metadata import passed_annotations, passed_labels
from controlplane.domain import layout
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.virt_controller.vmi.launch import Launch, derive_launch
from controlplane.virt_controller.vmi.node_affinity import avoid_nodes, avoid_pods

Json = dict[str, Any]

EXTRA_GRACE_SECONDS = 30
"""The launcher ends the guest within the VMI's grace period. The kubelet kills a hanging launcher this much later."""
ONLY_ASK_TO_EVICT = "descheduler.alpha.kubernetes.io/request-evict-only"
"""Tells a descheduler that a refused eviction is in progress: virt-api has started a migration."""
PORT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?", re.ASCII)
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
OWN_ANNOTATIONS = frozenset(
    {
        DEFAULT_CONTAINER,
        NETWORK_ANNOTATION,
        ONLY_ASK_TO_EVICT,
        PLAN_ANNOTATION,
        names.DOMAIN,
        names.EXCLUDED_NODES,
        names.GUEST_MEMORY,
        names.MIGRATION_JOB_NAME,
        names.VCPUS,
    }
)
"""Names of all annotations that come from the control plane. Others may be a user's."""


@dataclass(frozen=True, slots=True)
class Target:
    """How a migration's target Pod differs from other launcher Pods."""

    pod_name: str
    migration: str
    """Name of the migration."""
    migration_uid: str
    node_selector: dict[str, str]
    """The migration's own selector. The VMI's takes precedence."""
    needs: dict[str, str] = field(default_factory=dict)
    """Labels that the guest's CPU needs. They take precedence over all others."""


def build_launcher_pod(
    vmi: VirtualMachineInstance,
    *,
    attempt: int,
    image: str,
    configuration: KubeVirtConfiguration,
    image_pull_secrets: tuple[str, ...] = (),
    claims: Claims = NO_CLAIMS,
    excluded_nodes: Collection[str] = (),
    target: Target | None = None,
) -> Json:
    """Build the Pod. Raises ValueError with the part of the VMI that cannot be built.

    target: set for a migration. image_pull_secrets: for the launcher image; the VMI may name others for its own images.
    excluded_nodes: nodes without new machines.
    """
    launch = derive_launch(
        vmi,
        attempt=attempt,
        image=image,
        configuration=configuration,
        image_pull_secrets=image_pull_secrets,
        claims=claims,
        is_target=target is not None,
    )
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": _metadata(vmi, launch, excluded_nodes, target),
        "spec": _spec(vmi, launch, excluded_nodes, target),
    }


def _metadata(
    vmi: VirtualMachineInstance, launch: Launch, excluded_nodes: Collection[str], target: Target | None
) -> Json:
    meta = vmi.metadata
    job = {} if target is None else {names.MIGRATION_JOB: target.migration_uid}
    return {
        "name": launch.pod_name if target is None else target.pod_name,
        "namespace": meta.namespace,
        "labels": {
            **passed_labels(meta.labels),
            names.ROLE: names.LAUNCHER_ROLE,
            names.CREATED_BY: meta.uid,
            names.VM_NAME: launch.guest.hostname,
            names.VMI_ID: launch.vmi_label_value,
            **job,
        },
        "annotations": {
            **passed_annotations(meta.annotations),
            **_own_annotations(vmi, launch, excluded_nodes, target),
        },
        "ownerReferences": [owner_reference(vmi)],
    }


def _own_annotations(
    vmi: VirtualMachineInstance, launch: Launch, excluded_nodes: Collection[str], target: Target | None
) -> dict[str, str]:
    annotations = {
        names.DOMAIN: vmi.metadata.name,
        ONLY_ASK_TO_EVICT: "",
        PLAN_ANNOTATION: render_plan(launch.plan),
        names.VCPUS: str(vmi.spec.domain.vcpus),
        DEFAULT_CONTAINER: COMPUTE,
    }
    if launch.memory.most:
        annotations[names.GUEST_MEMORY] = str(launch.memory.guest)
    if launch.network is not None:
        annotations[NETWORK_ANNOTATION] = render_network(launch.network)
    if excluded_nodes:
        annotations[names.EXCLUDED_NODES] = ",".join(sorted(excluded_nodes))
    if target is not None:
        annotations[names.MIGRATION_JOB_NAME] = target.migration
    return annotations


def _spec(vmi: VirtualMachineInstance, launch: Launch, excluded_nodes: Collection[str], target: Target | None) -> Json:
    spec, failed_on = vmi.spec, [attempt.node_name for attempt in vmi.status.failed_attempts]
    affinity = avoid_nodes(spec.affinity, failed_on=failed_on, excluded_nodes=excluded_nodes)
    optional = {
        "subdomain": spec.subdomain,
        "affinity": affinity if target is None else avoid_pods(affinity, {names.CREATED_BY: vmi.metadata.uid}),
        "tolerations": [encode(toleration) for toleration in spec.tolerations],
        "topologySpreadConstraints": [encode(constraint) for constraint in spec.topology_spread_constraints],
        "schedulerName": spec.scheduler_name,
        "priorityClassName": spec.priority_class_name,
        "dnsPolicy": spec.dns_policy,
        "dnsConfig": encode(spec.dns_config) if spec.dns_config else None,
        "imagePullSecrets": [{"name": name} for name in launch.pull_secrets],
        # The guest arrives after the launcher starts. Until then, Services send to the source Pod.
        "readinessGates": [] if target is None else [{"conditionType": UNPAUSED}],
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": launch.guest.hostname,
        "terminationGracePeriodSeconds": spec.grace_period_seconds + EXTRA_GRACE_SECONDS,
        "securityContext": _pod_security(spec, launch),
        "nodeSelector": {
            **({} if target is None else target.node_selector),
            **spec.node_selector,
            "kubernetes.io/arch": spec.architecture or "amd64",
            names.SCHEDULABLE: "true",
            **launch.cpu_labels,
            **({} if target is None else target.needs),
        },
        "containers": [_compute(launch, _ports(spec))],
        "volumes": [
            {"name": layout.RUN_VOLUME, "emptyDir": {"sizeLimit": str(launch.run_bytes)}},
            _plan_volume(),
            *(mounted.volume for mounted in launch.mounted),
        ],
        **{key: value for key, value in optional.items() if value},
    }


def _pod_security(spec: VirtualMachineInstanceSpec, launch: Launch) -> Json:
    context: Json = {
        "runAsUser": layout.UID,
        "runAsGroup": layout.UID,
        "fsGroup": layout.UID,
        "runAsNonRoot": True,
        "seccompProfile": launch.seccomp,
    }
    if any(interface.masquerade is not None for interface in spec.domain.devices.interfaces):
        context["sysctls"] = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "67"}]
    return context


def _compute(launch: Launch, ports: list[Json]) -> Json:
    devices = [mounted.device for mounted in launch.mounted if mounted.device is not None]
    return {
        "name": COMPUTE,
        "image": launch.image,
        "imagePullPolicy": launch.pull_policy,
        "resources": launch.resources,
        **({"env": [{"name": "LOG_LEVEL", "value": launch.log_level}]} if launch.log_level else {}),
        **launch.probes,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": layout.RUN_VOLUME, "mountPath": layout.RUN},
            {"name": layout.PLAN_VOLUME, "mountPath": layout.PLAN_DIRECTORY, "readOnly": True},
            *(mounted.mount for mounted in launch.mounted if mounted.mount is not None),
        ],
        **({"volumeDevices": devices} if devices else {}),
        **({"ports": ports} if ports else {}),
    }


def _ports(spec: VirtualMachineInstanceSpec) -> list[Json]:
    """List the guest's declared ports: Services find a port by its name. Other ports are reachable as well."""
    return [
        {
            **({"name": port.name} if _may_name_a_port(port.name) else {}),
            "containerPort": port.port,
            "protocol": port.protocol or "TCP",
        }
        for interface in spec.domain.devices.interfaces
        for port in interface.ports
    ]


def _may_name_a_port(name: str) -> bool:
    """Tell whether a Pod's port may have this name; a VMI's interface allows more names."""
    return PORT_NAME.fullmatch(name) is not None and "--" not in name and any("a" <= char <= "z" for char in name)


def _plan_volume() -> Json:
    """Mount the launch plan as a file. The launcher reads it once: later updates by the kubelet have no effect."""
    source = {"fieldRef": {"fieldPath": f"metadata.annotations['{PLAN_ANNOTATION}']"}}
    items = [{"path": layout.PLAN_FILE, **source}]
    return {"name": layout.PLAN_VOLUME, "downwardAPI": {"defaultMode": 0o440, "items": items}}
