# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights of users with Kubernetes' roles admin, edit and view in a namespace, on a real API server.

Kubernetes' controllers run, because one of them aggregates roles. Users are impersonated. virt-api authorizes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.policies.cluster import RBAC, wait
from tests.controlplane.policies.replay import Replay, Request, Who
from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_api.test_real_api import GROUP, Installed, a_vm, installing

pytestmark = pytest.mark.component

ROLES = ("admin", "edit", "view")
WHO = {role: Who(f"{role}-of-default") for role in (*ROLES, "migrator")}
ADMIN, MAKERS = ROLES[:1], ROLES[:2]

VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
SETS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancereplicasets"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installing("roles", tmp_path_factory.mktemp("roles"), controllers=True) as api:
        yield api


@pytest.fixture(scope="module")
def send(installed: Installed) -> Iterator[Replay]:
    replay = Replay(installed.lab)
    for body in render("rbac-users.yaml.j2"):
        replay.admin("POST", f"{RBAC}/{body['kind'].lower()}s", body)
    for role in (*ROLES, "migrator"):
        subject = {"kind": "User", "name": WHO[role].user, "apiGroup": "rbac.authorization.k8s.io"}
        name = "kubevirt.io:migrate" if role == "migrator" else role
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
        replay.admin("POST", f"{RBAC}/namespaces/default/rolebindings", binding)
    for role in ROLES:
        wait(f"{role} is aggregated", lambda role=role: may(replay, role, "list", "kubevirt.io", "virtualmachines"))
    yield replay
    replay.close()


def may(send: Replay, role: str, verb: str, group: str, resource: str, namespace: str = "default") -> bool:
    """Send a SelfSubjectAccessReview as this user."""
    resource, _unused, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
    }
    body: Any = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return send(Request(WHO[role], "POST", path, body), for_real=True).body["status"]["allowed"] is True


@pytest.mark.parametrize("role", ROLES)
def test_requests_of_a_role_are_carried_out_or_refused(send: Replay, role: str) -> None:
    """The API server authorizes first, then virt-api authorizes again."""
    name = f"of-{role}"
    vm = a_vm(name)
    vm["metadata"]["labels"] = {"of": role}
    template = vm["spec"]["template"] | {"metadata": {"labels": {"of": role}}}
    set_spec = {"replicas": 0, "selector": {"matchLabels": {"of": role}}, "template": template}
    replica_set = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceReplicaSet",
        "metadata": {"name": name},
    }
    send.admin("POST", VMS, vm)
    send.admin("POST", SETS, {**replica_set, "spec": set_spec})
    base = f"{GROUP}/namespaces/default"
    requests = {
        "start": ("PUT", f"{base}/virtualmachines/{name}/start", None),
        "pause": ("PUT", f"{base}/virtualmachineinstances/{name}/pause", None),
        "guestosinfo": ("GET", f"{base}/virtualmachineinstances/{name}/guestosinfo", None),
        "expand-spec": ("GET", f"{base}/virtualmachines/{name}/expand-spec", None),
        "expand-vm-spec": ("PUT", f"{base}/expand-vm-spec", vm),
        "scale": ("PATCH", f"{SETS}/{name}/scale", {"spec": {"replicas": 2}}),
        "portforward": ("GET", f"{base}/virtualmachineinstances/{name}/portforward/22", None),
        "sev": ("GET", f"{base}/virtualmachineinstances/{name}/sev/fetchcertchain", None),
        "snapshots": ("GET", "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots", None),
        "guestfs": ("GET", f"{GROUP}/guestfs", None),
        "list": ("GET", VMS, None),
        "deletecollection": ("DELETE", f"{VMS}?labelSelector=of%3D{role}", None),
    }

    codes = {
        name_of_request: send(Request(WHO[role], *request), for_real=True).status
        for name_of_request, request in requests.items()
    }

    # There is no VMI: an authorized request gets the code for that. The stream is not asked for as a WebSocket.
    is_maker = role in MAKERS
    assert codes == {
        "start": 202 if is_maker else 403,
        "pause": 404 if is_maker else 403,
        "guestosinfo": 500,
        "expand-spec": 200,
        "expand-vm-spec": 200,
        "scale": 200 if is_maker else 403,
        "portforward": 400 if is_maker else 403,
        "sev": 501,
        "snapshots": 404,
        "guestfs": 200,
        "list": 200,
        "deletecollection": 200 if role in ADMIN else 403,
    }
    stored = send.admin("GET", f"{VMS}/{name}")
    assert stored["spec"]["runStrategy"] == ("Always" if is_maker else "Halted")
    assert ("deletionTimestamp" in stored["metadata"]) is (role in ADMIN)
    assert send.admin("GET", f"{SETS}/{name}")["spec"]["replicas"] == (2 if is_maker else 0)
