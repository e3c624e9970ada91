# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher Pod of a VMI: pure, from VMI, attempt and configuration to a manifest.

It passes Pod Security's `restricted` profile: user 107, no capability, read-only root, no token, nothing of the host.
The one sysctl (a safe one) lets the DHCP server bind its port without a capability.
"""

from __future__ import annotations

import hashlib
from typing import Any

from kubevirt_api import names

from controlplane.api.launch_plan import PLAN_VARIABLE, render_plan
from controlplane.api.objects.decode import encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import COMPUTE
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from controlplane.domain import layout
from controlplane.virt_controller.vmi.launch import NETWORK_DATA, USER_DATA, build_plan, guest_hostname
from controlplane.virt_controller.vmi.resources import build_resources
from controlplane.virt_controller.vmi.world import pod_name

Json = dict[str, Any]

EXTRA_GRACE_SECONDS = 30
"""The launcher ends the guest within the VMI's grace period; the kubelet's kill comes later, if ever."""
DROPPED_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "kubevirt.io/latest-observed-api-version",
        "kubevirt.io/storage-observed-api-version",
    }
)
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def build_launcher_pod(
    vmi: VirtualMachineInstance, *, attempt: int, image: str, configuration: KubeVirtConfiguration
) -> Json:
    """Build the Pod. ValueError names what in the VMI cannot be built."""
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": _metadata(vmi, attempt),
        "spec": _spec(vmi, image, configuration),
    }


def _metadata(vmi: VirtualMachineInstance, attempt: int) -> Json:
    meta = vmi.metadata
    return {
        "name": pod_name(vmi, attempt),
        "namespace": meta.namespace,
        "labels": {
            **{key: value for key, value in meta.labels.items() if key != names.NODE_NAME},
            names.ROLE: names.LAUNCHER_ROLE,
            names.CREATED_BY: meta.uid,
            names.VM_NAME: guest_hostname(vmi),
            names.VMI_ID: vmi_id(meta.name),
        },
        "annotations": {
            **{key: value for key, value in meta.annotations.items() if key not in DROPPED_ANNOTATIONS},
            names.DOMAIN: meta.name,
            DEFAULT_CONTAINER: COMPUTE,
        },
        "ownerReferences": [owner_reference(vmi)],
    }


def owner_reference(vmi: VirtualMachineInstance) -> Json:
    """Build the reference by which a VMI controls its Pods."""
    return {
        "apiVersion": VIRTUAL_MACHINE_INSTANCE.api_version,
        "kind": VIRTUAL_MACHINE_INSTANCE.kind,
        "name": vmi.metadata.name,
        "uid": vmi.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def vmi_id(name: str) -> str:
    """Return the VMI's name as a label value: whole if it fits, else cut and made unique by its SHA-1."""
    if len(name) <= 63:
        return name
    return f"{name[:54]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _spec(vmi: VirtualMachineInstance, image: str, configuration: KubeVirtConfiguration) -> Json:
    spec = vmi.spec
    volumes = _volumes(spec)
    optional = {
        "subdomain": spec.subdomain,
        "affinity": spec.affinity,
        "tolerations": [encode(one) for one in spec.tolerations],
        "schedulerName": spec.scheduler_name,
        "priorityClassName": spec.priority_class_name,
        "dnsPolicy": spec.dns_policy,
        "dnsConfig": encode(spec.dns_config) if spec.dns_config else None,
        "imagePullSecrets": [{"name": name} for name in _pull_secrets(spec)],
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": guest_hostname(vmi),
        "terminationGracePeriodSeconds": spec.grace_period_seconds + EXTRA_GRACE_SECONDS,
        "securityContext": _pod_security(spec),
        "nodeSelector": {
            **spec.node_selector,
            "kubernetes.io/arch": spec.architecture or "amd64",
            names.SCHEDULABLE: "true",
        },
        "containers": [_compute(vmi, image, configuration, [mount for _unused, mount in volumes])],
        "volumes": [{"name": layout.RUN_VOLUME, "emptyDir": {}}, *(volume for volume, _unused in volumes)],
        **{key: value for key, value in optional.items() if value},
    }


def _pod_security(spec: VirtualMachineInstanceSpec) -> Json:
    context: Json = {
        "runAsUser": layout.UID,
        "runAsGroup": layout.UID,
        "fsGroup": layout.UID,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if any(one.masquerade is not None for one in spec.domain.devices.interfaces):
        context["sysctls"] = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "67"}]
    return context


def _compute(vmi: VirtualMachineInstance, image: str, configuration: KubeVirtConfiguration, mounts: list[Json]) -> Json:
    return {
        "name": COMPUTE,
        "image": image,
        "imagePullPolicy": configuration.image_pull_policy or "IfNotPresent",
        "env": [
            {"name": PLAN_VARIABLE, "value": _plan_value(vmi)},
            *(
                {"name": f"POD_{part.upper()}", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{part}"}}}
                for part in ("name", "namespace", "uid")
            ),
        ],
        "resources": build_resources(vmi.spec.domain, configuration.developer_configuration),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": layout.RUN_VOLUME, "mountPath": layout.RUN}, *mounts],
    }


def _plan_value(vmi: VirtualMachineInstance) -> str:
    """Write the plan so that no `$` is left: the kubelet would expand $(NAME) and halve $$ in user data."""
    return render_plan(build_plan(vmi)).replace("$", "\\u0024")


def _volumes(spec: VirtualMachineInstanceSpec) -> list[tuple[Json, Json]]:
    """List Pod volumes with their mounts: images, the kernel's image, Secrets for cloud-init."""
    listed: list[tuple[Json, Json]] = []
    for one in spec.volumes:
        if one.container_disk is not None:
            disk = one.container_disk
            name, where = layout.pod_volume(one.name), layout.image_mount(one.name)
            listed.append(_image(name, disk.image, disk.image_pull_policy, where))
        if one.cloud_init_no_cloud is not None:
            source = one.cloud_init_no_cloud
            for part, reference in ((USER_DATA, source.secret_ref), (NETWORK_DATA, source.network_data_secret_ref)):
                if reference is not None:
                    listed.append(_secret(one.name, part, reference.name))
    boot = spec.domain.firmware.kernel_boot if spec.domain.firmware else None
    if boot is not None and boot.container is not None:
        container = boot.container
        listed.append(
            _image(layout.KERNEL_BOOT_VOLUME, container.image, container.image_pull_policy, layout.KERNEL_BOOT)
        )
    return listed


def _image(name: str, reference: str, policy: str, where: str) -> tuple[Json, Json]:
    image = {"reference": reference, "pullPolicy": policy} if policy else {"reference": reference}
    return {"name": name, "image": image}, {"name": name, "mountPath": where, "readOnly": True}


def _secret(volume: str, part: str, secret: str) -> tuple[Json, Json]:
    """Mount a Secret whole: a missing one keeps the Pod waiting, and either spelling of its key will do."""
    name = f"{part}-{hashlib.sha256(volume.encode()).hexdigest()[:16]}"
    where = layout.cloud_init_secret(volume, part)
    source = {"secretName": secret, "defaultMode": 0o440}
    return {"name": name, "secret": source}, {"name": name, "mountPath": where, "readOnly": True}


def _pull_secrets(spec: VirtualMachineInstanceSpec) -> list[str]:
    boot = spec.domain.firmware.kernel_boot if spec.domain.firmware else None
    named = [one.container_disk.image_pull_secret for one in spec.volumes if one.container_disk is not None]
    if boot is not None and boot.container is not None:
        named.append(boot.container.image_pull_secret)
    return sorted({one for one in named if one})
