# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher Pod against golden files. To accept a change: UPDATE_GOLDEN=1 pytest this file, and read the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from controlplane.api.launch_plan import parse_plan
from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.decode import decode, decode_kubevirt
from controlplane.virt_controller.vmi.launcher_pod import OWN_ANNOTATIONS, Target, build_launcher_pod
from tests.controlplane.virt_controller.builders import a_vmi

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "launcher_pod"
MEMORY = {"memory": {"guest": "128Mi"}}
NIC = {"interfaces": [{"name": "default", "masquerade": {}}]}
EMULATED = {"developerConfiguration": {"useEmulation": True}, "imagePullPolicy": "Never"}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "minimal": ({"domain": MEMORY}, {}),
    "usual": (
        {
            "domain": {**MEMORY, "devices": NIC},
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [
                {"name": "root", "containerDisk": {"image": "localhost/virtops/test-guest:0.1.0"}},
                {"name": "seed", "cloudInitNoCloud": {"userData": "#!/bin/sh\necho hello\n"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}},
            ],
            "livenessProbe": {"exec": {"command": ["test", "-e", "/run/alive"]}, "periodSeconds": 20},
            "readinessProbe": {"httpGet": {"port": 8080, "path": "/ready"}, "failureThreshold": 1},
        },
        EMULATED,
    ),
    "everything": (
        {
            "domain": {
                **MEMORY,
                "devices": NIC,
                "resources": {"limits": {"memory": "256Mi"}},
                "firmware": {
                    "kernelBoot": {
                        "container": {"image": "kernel:1", "imagePullSecret": "registry", "imagePullPolicy": "Always"}
                    }
                },
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [
                {"name": "root", "containerDisk": {"image": "guest:1", "imagePullSecret": "registry"}},
                {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
                {
                    "name": "seed",
                    "cloudInitNoCloud": {"secretRef": {"name": "user"}, "networkDataSecretRef": {"name": "net"}},
                },
            ],
            "terminationGracePeriodSeconds": 0,
            "hostname": "mail",
            "subdomain": "vms",
            "nodeSelector": {"disk": "fast", "kubevirt.io/schedulable": "false"},
            "affinity": {"nodeAffinity": {}},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ],
            "schedulerName": "mine",
            "priorityClassName": "high",
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["10.0.0.10"]},
        },
        {},
    ),
}


CLAIMED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
CLAIMS = {
    "data": decode({"spec": CLAIMED}, PersistentVolumeClaim),
    "raw": decode({"spec": {**CLAIMED, "volumeMode": "Block"}}, PersistentVolumeClaim),
}


def build(
    spec: dict[str, Any], configuration: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    vmi = a_vmi(spec=spec, node="node-9")
    meta = msgspec.structs.replace(
        vmi.metadata,
        labels={**vmi.metadata.labels, "app": "web"},
        annotations=annotations or {"prometheus.io/port": "9100", "mine": "not passed on"},
    )
    settings = decode_kubevirt({"spec": {"configuration": configuration}}).spec.configuration
    whole = msgspec.structs.replace(vmi, metadata=meta)
    image = "localhost/virtops/virt-launcher:0.1.0"
    return build_launcher_pod(whole, attempt=1, image=image, configuration=settings, claims=CLAIMS)


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_the_pod_has_these_fields(name: str, case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    text = yaml.safe_dump(build(*case), sort_keys=False, width=1000)
    golden = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_the_pod_has_the_seccomp_profile_of_the_configuration() -> None:
    profile = {"localhostProfile": "profiles/launcher.json"}
    config = {"seccompConfiguration": {"virtualMachineInstanceProfile": {"customProfile": profile}}}
    spec, _unused = next(iter(CASES.values()))
    assert build(spec, config)["spec"]["securityContext"]["seccompProfile"] == {"type": "Localhost", **profile}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_pod_passes_the_restricted_profile(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    spec = build(*case)["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(spec)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"emptyDir", "downwardAPI", "image", "secret", "persistentVolumeClaim"}
    safe = {"net.ipv4.ip_unprivileged_port_start"}
    assert {sysctl["name"] for sysctl in spec["securityContext"].get("sysctls", ())} <= safe


@pytest.mark.parametrize(
    ("model", "developer", "labels"),
    [
        ("Haswell", {}, ["cpu-model.node.kubevirt.io/Haswell"]),
        ("Haswell", {"useEmulation": True}, []),
        ("host-model", {}, []),
        ("host-passthrough", {}, []),
    ],
)
def test_a_named_cpu_model_needs_a_node_that_has_it(model: str, developer: dict[str, Any], labels: list[str]) -> None:
    """Its label says so. Elsewhere QEMU would not start."""
    spec = {"domain": {"cpu": {"model": model}, "memory": {"guest": "64Mi"}}}
    selector = build(spec, {"developerConfiguration": developer})["spec"]["nodeSelector"]
    assert [name for name in selector if name.startswith("cpu-")] == labels


def test_the_list_of_own_annotations_is_complete() -> None:
    """A Pod with every annotation and none of a user: a target of a VMI with an interface and memory to plug."""
    spec = {
        "domain": {"memory": {"guest": "1Gi", "maxGuest": "2Gi"}, "devices": NIC},
        "networks": [{"name": "default", "pod": {}}],
    }
    pod = build_launcher_pod(
        a_vmi(spec=spec),
        attempt=1,
        image="launcher:1",
        configuration=decode_kubevirt({}).spec.configuration,
        excluded_nodes=("node-2",),
        target=Target(pod_name="target", migration="move", migration_uid="5d0c", node_selector={}),
    )
    assert set(pod["metadata"]["annotations"]) == OWN_ANNOTATIONS


def test_user_data_reaches_the_launcher_unchanged_and_not_by_environment() -> None:
    script = "#!/bin/sh\necho $$ $(hostname) $HOME 'grüße'\n"
    volumes = [{"name": "seed", "cloudInitNoCloud": {"userData": script}}]
    pod = build({"domain": MEMORY, "volumes": volumes}, {})
    (container,) = pod["spec"]["containers"]
    assert "env" not in container
    (plan,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "launch-plan")
    (item,) = plan["downwardAPI"]["items"]
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['kubevirt.io/launch-plan']"
    handed_over = pod["metadata"]["annotations"]["kubevirt.io/launch-plan"].encode()
    assert parse_plan(handed_over).cloud_init[0].user_data == script
    assert "$(hostname)" not in str(pod["spec"])


@pytest.mark.parametrize(
    ("port", "name", "protocol"),
    [
        ({"name": "ssh"}, "ssh", "TCP"),
        ({"name": "dns", "protocol": "UDP"}, "dns", "UDP"),
        ({}, None, "TCP"),
        ({"name": "a-name-of-16-chr"}, None, "TCP"),
        ({"name": "8080"}, None, "TCP"),
        ({"name": "two--dashes"}, None, "TCP"),
    ],
)
def test_a_service_may_name_the_ports_of_the_guest(port: dict[str, Any], name: str | None, protocol: str) -> None:
    """It looks up the name among the Pod's ports; an invalid port would prevent the Pod."""
    nic = {"interfaces": [{"name": "default", "masquerade": {}, "ports": [{"port": 80, **port}]}]}
    pod = build({"domain": {**MEMORY, "devices": nic}, "networks": [{"name": "default", "pod": {}}]}, {})
    named = {"name": name} if name else {}
    assert pod["spec"]["containers"][0]["ports"] == [{**named, "containerPort": 80, "protocol": protocol}]


def test_users_cannot_set_the_launch_plan() -> None:
    planted = {"kubevirt.io/launch-plan": "{}", "kubevirt.io/domain": "another"}
    pod = build(*CASES["minimal"], annotations={**planted, "k8s.v1.cni.cncf.io/networks": "other/secret"})
    assert "k8s.v1.cni.cncf.io/networks" not in pod["metadata"]["annotations"]
    assert parse_plan(pod["metadata"]["annotations"]["kubevirt.io/launch-plan"].encode()).title == "default/web"
    assert pod["metadata"]["annotations"]["kubevirt.io/domain"] == "web"
