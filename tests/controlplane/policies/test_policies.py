# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's admission policies on a real API server with Kubernetes' own controllers: hundreds of requests.

Rows are sent as dry runs, which pass admission and store nothing. The tests of Kubernetes' own behaviour store objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.api.objects.phase import OWNERS, UNKNOWN, Owner, is_allowed_transition
from lab import Lab
from tests.controlplane.policies.cluster import (
    PHASES,
    TAINT,
    WHERE,
    in_force,
    install,
    make_instance,
    make_pods,
    populate,
    read,
    wait,
)
from tests.controlplane.policies.controller_rows import CONTROLLER_ROWS, SERVING_ROWS
from tests.controlplane.policies.event_rows import EVENT_ROWS
from tests.controlplane.policies.handler_rows import HANDLER, LEASE_ROWS, NODE_ROWS, VMI_ROWS, Row, status
from tests.controlplane.policies.manager_rows import APPLIED_TO_NODE, MANAGER_ROWS, managers, ways, with_more
from tests.controlplane.policies.migration_rows import MIGRATION_ROWS
from tests.controlplane.policies.note_rows import NOTE_ROWS
from tests.controlplane.policies.part_rows import PART_ROWS
from tests.controlplane.policies.placing_rows import PLACING_ROWS
from tests.controlplane.policies.pod_rows import (
    CONTROLLER,
    EDITOR,
    KUBELET,
    NOW,
    PLAIN,
    POD_ROWS,
    ROOT,
    ephemeral,
    eviction,
    launcher,
    plain,
)
from tests.controlplane.policies.replay import INSTALL_NAMESPACE, NODES, PODS, VMIS, Answer, Facts, Replay, Request, Who

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def send() -> Iterator[Replay]:
    lab = Lab("policies")
    with lab.running(nodes=0, controllers=False):
        replay = Replay(lab)
        install(replay)
        wait("VMIs are served", lambda: replay.exists(VMIS))
        lab.up(0)  # Controllers that start after the CRDs see them at once instead of after half a minute.
        wait("Pods can be made", lambda: replay.exists("/api/v1/namespaces/default/serviceaccounts/default"))
        populate(replay)
        make_pods(replay)
        wait("policies and roles are in force", lambda: in_force(replay))
        yield replay
        replay.close()


@pytest.fixture(scope="module")
def facts(send: Replay) -> Facts:
    return read(send)


def check(answer: Answer, words: str | None) -> None:
    if words is None:
        assert answer.is_taken, answer.message
    else:
        assert not answer.is_taken
        assert words in answer.message


TABLES = {
    "labels and annotations of a node": NOTE_ROWS,
    "virt-handler on nodes": NODE_ROWS,
    "virt-controller on nodes": CONTROLLER_ROWS,
    "virt-controller on the status of launchers": SERVING_ROWS,
    "virt-handler on Leases": LEASE_ROWS,
    "virt-handler on Events": EVENT_ROWS,
    "virt-handler on VMIs": VMI_ROWS,
    "virt-handler on migrations": MIGRATION_ROWS,
    "field managers of virt-handler": MANAGER_ROWS,
    "launcher Pods": POD_ROWS,
    "the status of other Pods": PART_ROWS,
    "bindings of Pods": PLACING_ROWS,
}


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=f"{table}: {name}") for table, rows in TABLES.items() for name, row in rows.items()],
)
def test_the_policies_follow_the_tables(send: Replay, facts: Facts, row: Row) -> None:
    request, words = row
    check(send(request, facts), words)


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
def test_other_subresources_of_a_pod_do_not_write_its_metadata(send: Replay, part: str) -> None:
    """Kubernetes' own rule. Our policies rely on it."""
    mark = {"kubevirt.io/created-by": "1"}
    spec = ephemeral()["spec"] if part == "ephemeralcontainers" else {}
    body = {"metadata": {"labels": mark, "annotations": mark}, "spec": spec}
    before = send.admin("GET", PLAIN)["metadata"]
    response = send(Request(ROOT, "STRATEGIC", f"{PLAIN}/{part}", body))

    assert response.is_taken, response.message
    assert response.body["metadata"]["labels"] == before["labels"]
    assert "annotations" not in response.body["metadata"]


@pytest.mark.parametrize("before", PHASES)
def test_virt_handler_changes_phases_according_to_the_table(send: Replay, before: str) -> None:
    """Only virt-controller sets Unknown: a virt-handler that can write knows the phase."""
    accepted = {}
    for after in PHASES.values():
        request, _unused = status(f"{VMIS}/{before.lower()}/status", None, phase=after)
        accepted[after] = send(request).is_taken
    is_handlers = OWNERS[PHASES[before]] is Owner.HANDLER
    expected = {
        after: is_handlers and is_allowed_transition(PHASES[before], after) and (after != UNKNOWN or before == UNKNOWN)
        for after in PHASES.values()
    }

    assert accepted == expected


def test_the_api_server_reports_no_warnings_about_the_policies(send: Replay) -> None:
    policies: Any = []

    def is_checked() -> bool:
        policies[:] = send.admin("GET", WHERE["ValidatingAdmissionPolicy"])["items"]
        return all(policy.get("status", {}).get("observedGeneration") for policy in policies)

    wait("policies are checked", is_checked)
    warnings_by_name = {
        policy["metadata"]["name"]: policy["status"].get("typeChecking", {}).get("expressionWarnings")
        for policy in policies
    }
    assert not any(warnings_by_name.values()), warnings_by_name


def test_a_token_that_the_kubelet_requests_names_its_node(send: Replay) -> None:
    """The rows use impersonation. This test uses real tokens: one bound to a Pod of the node, one unbound."""
    pods = f"/api/v1/namespaces/{INSTALL_NAMESPACE}/pods"
    pod = plain("virt-handler")
    pod["spec"] |= {"nodeName": "node-1", "serviceAccountName": "kubevirt-handler"}
    created = send.admin("POST", pods, pod)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "virt-handler", "uid": created["metadata"]["uid"]}
    account = f"{WHERE['ServiceAccount']}/kubevirt-handler/token"

    def token(**spec: Any) -> str:
        return str(send.admin("POST", account, {"spec": {"audiences": [], **spec}})["status"]["token"])

    beat, _unused = LEASE_ROWS["its heartbeat"]
    check(send.with_token(token(boundObjectRef=reference), beat), None)
    check(send.with_token(token(), beat), "names no node")


@pytest.mark.parametrize(
    "managed_fields", [managers("kubevirt.io/v1", 9), [{}], [], None], ids=["others", "nobody", "none", "null"]
)
def test_a_status_write_does_not_set_managed_fields(send: Replay, managed_fields: Any) -> None:
    """A write to an object itself can set managedFields, and the policies limit them. A status write cannot."""
    body = {"metadata": {"managedFields": managed_fields}, "status": {"guestOSInfo": {"name": "x"}}}
    before = send.admin("GET", f"{VMIS}/running")["metadata"]["managedFields"]
    response = send(Request(HANDLER, "PATCH", f"{VMIS}/running/status", body))

    assert response.is_taken, response.message
    entries = response.body["metadata"]["managedFields"]
    assert [entry for entry in entries if entry["manager"] != HANDLER.manager] == before


@pytest.mark.parametrize("forgery", ["more", "nobody", "none", "null"])
@pytest.mark.parametrize("who", [Who(HANDLER.user, "applied"), CONTROLLER], ids=["virt-handler", "virt-controller"])
def test_forged_managed_fields_of_a_node_do_not_make_an_apply_remove_fields(
    send: Replay, who: Who, forgery: str
) -> None:
    """An apply removes the fields that its manager owns and that it omits, here a taint."""
    path = f"{NODES}/applied"
    node_body = {"metadata": {"name": "applied", "annotations": {"a": "b"}}, "spec": {"taints": [TAINT]}}
    send.admin("PATCH" if send.exists(path) else "POST", path if send.exists(path) else NODES, node_body)
    apply = Request(ROOT, "APPLY", path, APPLIED_TO_NODE, "kubectl")
    check(send(apply, for_real=True), None)
    kubectl_entry = next(
        entry for entry in send.admin("GET", path)["metadata"]["managedFields"] if entry["manager"] == "kubectl"
    )
    forged: Any = {"more": [with_more(kubectl_entry)], "nobody": [{}], "none": [], "null": None}[forgery]
    for target in (path, f"{path}/status"):
        for request in ways(who, target, send.admin("GET", path), forged):
            send(request, for_real=True)
    entries = send.admin("GET", path)["metadata"].get("managedFields", ())
    check(send(apply, for_real=True), None)
    node = send.admin("GET", path)

    assert TAINT in node["spec"].get("taints", ())
    assert node["metadata"]["annotations"]["a"] == "b"
    assert [entry["fieldsV1"] for entry in entries if entry["manager"] == "kubectl"] == [kubectl_entry["fieldsV1"]]


def test_kubernetes_can_still_delete_launchers(send: Replay) -> None:
    """A graceful delete, a forced delete, an eviction, a deleted owner, and a deleted owner that orphans."""
    for name in ("kept", "collected"):
        make_instance(send, name, "Running", "node-1")

    def begin(name: str, vmi: str) -> str:
        facts = {f"{VMIS}/running": send.admin("GET", f"{VMIS}/{vmi}")}
        assert send(Request(CONTROLLER, "POST", PODS, launcher(facts, name)), for_real=True).is_taken
        send.admin("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"name": "node-1"}})
        return f"{PODS}/{name}"

    def really(request: Request) -> None:
        check(send(request, for_real=True), None)

    def is_ending(path: str) -> bool:
        return "deletionTimestamp" in send.admin("GET", path)["metadata"]

    graceful, forced, evicted = (begin(name, "running") for name in ("graceful", "forced", "evicted"))
    orphan, collected = begin("orphan", "kept"), begin("collected", "collected")

    really(Request(EDITOR, "DELETE", graceful))
    assert is_ending(graceful)
    really(Request(KUBELET, "STRATEGIC", f"{graceful}/status", {"status": {"phase": "Failed"}}))
    really(Request(KUBELET, "DELETE", graceful, NOW))
    really(Request(EDITOR, "DELETE", forced, NOW))
    really(Request(EDITOR, "POST", f"{evicted}/eviction", eviction("evicted")))
    assert is_ending(evicted)
    send.admin("DELETE", f"{VMIS}/kept", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})
    send.admin("DELETE", f"{VMIS}/collected")

    assert not send.exists(graceful)
    assert not send.exists(forced)
    wait("the orphan has no owner", lambda: "ownerReferences" not in send.admin("GET", orphan)["metadata"])
    wait("the owner is gone", lambda: not send.exists(f"{VMIS}/kept"))
    wait("the owned is ended", lambda: not send.exists(collected) or is_ending(collected))
    assert send.admin("GET", orphan)["metadata"]["labels"]["kubevirt.io"] == "virt-launcher"
    assert not is_ending(orphan)
