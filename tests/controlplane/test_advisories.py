# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known vulnerabilities of control planes like this one: one test per class, on the real decisions and manifests.

These tests need no node. Files that a launcher plants in its own directory: virt_node/test_launcher_dir.py. Writes of a
compromised node: policies/. Roles of key pairs: virt_controller/certificates/test_roles.py. Impersonation:
virt_api/test_server.py. Rights of our own Pods: test_rights.py. The list of advisories: docs/security.md.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from libvirt_domain.codec import render_text

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.virt_api.http.routes import NoRoute, SubresourceRoute, find_route
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from tests.controlplane.api import golden
from tests.controlplane.api.admission.test_verdict import create
from tests.controlplane.domain.golden_domains import CASES
from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_controller.builders import VMI_UID, a_pod, a_vmi

Json = dict[str, Any]
VOLUMES = "spec/template/spec/volumes"
SUBRESOURCES = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"


def launcher(**spec: Any) -> Json:
    vmi = a_vmi(spec={"domain": {"memory": {"guest": "64Mi"}}, **spec})
    return build_launcher_pod(vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration())


def refused(path: str, value: Any) -> str:
    """Return the message that refuses a machine with one field changed."""
    verdict = create(golden.changed(golden.load("vm-full"), path, value))
    assert not verdict.allowed
    return "; ".join(map(str, verdict.problems))


def rules() -> Iterator[tuple[str, Json]]:
    """Return the RBAC rules of our accounts by template, without those for users."""
    for name in ("rbac-api", "rbac-controller", "rbac-handler"):
        for body in render(f"{name}.yaml.j2"):
            yield from ((name, rule) for rule in body.get("rules", ()))


def test_no_component_can_read_users_secrets() -> None:
    """A component that reads Secrets by name leaks any Secret to any user who can name it. The kubelet mounts them."""
    pod = launcher(volumes=[{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "theirs"}}}])
    mounted = [volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    named = [name for _unused, rule in rules() if "secrets" in rule["resources"] for name in rule["resourceNames"]]

    assert [item["secretName"] for item in mounted] == ["theirs"]
    assert named
    assert all(name.startswith("kubevirt-") for name in named), "ours, in the control plane's own namespace"
    for body in (
        body for name in ("rbac-api", "rbac-controller", "rbac-handler") for body in render(f"{name}.yaml.j2")
    ):
        if body["kind"] == "ClusterRole":
            assert not [rule for rule in body["rules"] if "secrets" in rule["resources"]]


@pytest.mark.parametrize("name", ["theirs/seed", "../theirs/seed", "..", "theirs%2Fseed", "theirs:seed", "/seed"])
def test_references_of_a_tenant_are_resolved_in_its_namespace(name: str) -> None:
    """Otherwise a tenant reaches the objects of others by naming them."""
    for seed in ({"secretRef": {"name": name}}, {"userData": "x", "networkDataSecretRef": {"name": name}}):
        assert "DNS subdomain" in refused(f"{VOLUMES}/0", {"name": "root", "cloudInitNoCloud": seed})
    assert "persistentVolumeClaim" in refused(VOLUMES, [{"name": "root", "persistentVolumeClaim": {"claimName": name}}])
    assert launcher()["metadata"]["namespace"] == a_vmi().metadata.namespace


def test_a_machine_cannot_name_a_host_path() -> None:
    """A disk at a host path gives the tenant the node."""
    assert "hostDisk" in refused(VOLUMES, [{"name": "root", "hostDisk": {"path": "/etc", "type": "Disk"}}])
    every = launcher(
        volumes=[
            {"name": "root", "containerDisk": {"image": "guest:1"}},
            {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": "x"}},
        ]
    )["spec"]
    assert not [volume for volume in every["volumes"] if "hostPath" in volume]
    assert not [name for name in ("hostNetwork", "hostPID", "hostIPC") if every.get(name)]


@pytest.mark.parametrize("path", ["disk/x", "/disk/../../etc/shadow", "/disk/./x", "../x", "/", "/disk\0x"])
def test_a_path_in_an_image_stays_in_the_image(path: str) -> None:
    """A privileged process that resolves a relative path can be led to any file."""
    refused(f"{VOLUMES}/0", {"name": "root", "containerDisk": {"image": "guest:1", "path": path}})
    container = {"image": "kernel:1", "kernelPath": path, "initrdPath": "/boot/initrd"}
    refused("spec/template/spec/domain/firmware", {"kernelBoot": {"container": container}})


def test_no_account_of_ours_can_escalate() -> None:
    """A token with a wildcard, or with a verb such as escalate or bind, is cluster-admin."""
    handed_on = {"*", "escalate", "bind", "impersonate"}
    entrances = {"*", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "nodes/proxy", "serviceaccounts/token"}

    for name, rule in rules():
        assert not handed_on & set(rule["verbs"]), name
        assert not entrances & set(rule["resources"]), name
        assert "*" not in rule["apiGroups"], name


def test_our_rights_copy_nobodys_disk() -> None:
    """CDI checks whether the creator of a DataVolume may copy: for a template that is virt-controller."""
    cdi = [(name, rule) for name, rule in rules() if "cdi.kubevirt.io" in rule["apiGroups"]]

    assert [(name, rule["resources"], rule["verbs"]) for name, rule in cdi] == [
        ("rbac-controller", ["datavolumes"], ["get", "list", "watch", "create", "patch"])
    ]


def test_a_launcher_has_no_token_and_no_root() -> None:
    """A guest that escapes from QEMU finds neither."""
    spec = launcher()["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]

    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True


def test_virt_api_cannot_create_or_delete_pods_and_virt_handler_cannot_write_them() -> None:
    """Such unneeded rights were part of a chain by which a compromised node took over a cluster."""
    verbs = {
        (name, verb)
        for name, rule in rules()
        for verb in rule["verbs"]
        if any(resource.startswith("pods") for resource in rule["resources"])
    }

    assert {verb for name, verb in verbs if name == "rbac-api"} == {"get", "list"}, (
        "whose launcher is to be evicted, and its address"
    )
    assert {verb for name, verb in verbs if name == "rbac-handler"} <= {"get", "list", "watch"}


def test_a_pod_with_the_right_labels_is_not_adopted() -> None:
    """Labels are user input: adopted by label, a tenant's Pod could end a machine."""
    forged = a_pod(owner_name=None, labels={"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": VMI_UID})

    assert forged.owner is None
    assert forged.vmi_key is None


@pytest.mark.parametrize(
    ("path", "subresource"),
    [
        ("vnc", "vnc"),
        ("vnc/screenshot", "vnc/screenshot"),
        ("sev/setupsession", "sev/setupsession"),
        ("portforward/22/tcp", "portforward"),
    ],
)
def test_access_is_reviewed_for_the_whole_subresource_path(path: str, subresource: str) -> None:
    """Checked by its first segment only, the right to one subresource was the right to another."""
    method = "PUT" if path == "sev/setupsession" else "GET"
    route = find_route(method, f"{SUBRESOURCES}/{path}")

    assert isinstance(route, SubresourceRoute)
    assert route.access.subresource == subresource


@pytest.mark.parametrize("path", ["vnc/", "vnc//screenshot", "vnc/./screenshot", "vnc/%2e%2e/console", "VNC", "vnc/x"])
def test_an_ambiguous_path_is_refused(path: str) -> None:
    assert isinstance(find_route("GET", f"{SUBRESOURCES}/{path}"), NoRoute)


HOSTILE = "a</name><os><loader>/x</loader></os>\"'<!--]]>&xxe;"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_text_stays_text_in_the_domain_xml(case: Any) -> None:
    """A name that closes its element could write the rest of the domain."""
    plain = case.build()
    domain = dataclasses.replace(plain, name=HOSTILE)

    text = render_text(domain)
    read = ElementTree.fromstring(text)

    assert read.findtext("name") == HOSTILE
    assert [item.tag for item in read] == [item.tag for item in ElementTree.fromstring(render_text(plain))]
    assert "qemu:commandline" not in text


def test_no_qemu_option_comes_from_user_text() -> None:
    for path, value in (
        ("spec/template/spec/domain/machine", {"type": "q35,kernel-irqchip=off"}),
        ("spec/template/spec/domain/cpu", {"model": "host-model;x"}),
        ("spec/template/spec/domain/firmware", {"serial": "a\x01b"}),
    ):
        refused(path, value)


def test_no_account_of_ours_can_change_managed_fields_of_a_node() -> None:
    """An administrator's next apply would remove the fields attributed to it. Status writes do not carry them."""
    written = {
        (name, resource)
        for name, rule in rules()
        if set(rule["verbs"]) - {"get", "list", "watch"}
        for resource in rule["resources"]
        if resource.partition("/")[0] == "nodes"
    }

    assert written == {("rbac-handler", "nodes/status"), ("rbac-controller", "nodes/status")}


def test_every_write_of_a_node_is_checked_against_that_node() -> None:
    """A token of one node that is valid for all nodes is a token for the cluster. Each request: policies/."""
    bound = {
        body["metadata"]["name"]: json.dumps(body["spec"])
        for body in render("node-restriction.yaml.j2")
        if body["kind"] == "ValidatingAdmissionPolicy" and "kubevirt-handler'" in json.dumps(body["spec"])
    }
    written = {
        resource.partition("/")[0]
        for name, rule in rules()
        if name == "rbac-handler" and set(rule["verbs"]) - {"get", "list", "watch"}
        for resource in rule["resources"]
    }

    assert written == {"virtualmachineinstances", "nodes", "events", "leases"}
    for resource in written:
        (policy,) = (text for text in bound.values() if f'"{resource}"' in text)
        assert "authentication.kubernetes.io/node-name" in policy
        assert '"failurePolicy": "Fail"' in policy
