# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's admission policies on a real API server, with Kubernetes' own controllers: hundreds of requests replayed.

Rows are sent as dry runs, which pass through admission and store nothing; what Kubernetes does by itself is for real.
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
from tests.controlplane.policies.handler_rows import HANDLER, LEASE_ROWS, NODE_ROWS, VMI_ROWS, status
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
from tests.controlplane.policies.replay import NAMESPACE, NODES, PODS, VMIS, Answer, Facts, Replay, Request, Who

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def send() -> Iterator[Replay]:
    lab = Lab("policies")
    with lab.running(nodes=0, controllers=False):
        replay = Replay(lab)
        install(replay)
        wait("VMIs are served", lambda: replay.exists(VMIS))
        lab.up(0)  # Controllers that come after the CRDs know them at once, and not after half a minute.
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


@pytest.mark.parametrize("name", NOTE_ROWS)
def test_what_a_node_says_of_itself_stays_small(name: str, send: Replay, facts: Facts) -> None:
    """Everybody who watches Nodes gets all of it, each time that one changes."""
    request, words = NOTE_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", NODE_ROWS)
def test_a_node_writes_only_our_labels_and_annotations_of_itself(send: Replay, facts: Facts, name: str) -> None:
    request, words = NODE_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", CONTROLLER_ROWS)
def test_virt_controller_says_of_a_node_only_that_no_machines_go_there(send: Replay, facts: Facts, name: str) -> None:
    request, words = CONTROLLER_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", SERVING_ROWS)
def test_virt_controller_says_of_a_pod_only_that_its_guest_is_there(send: Replay, facts: Facts, name: str) -> None:
    request, words = SERVING_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", LEASE_ROWS)
def test_a_node_writes_only_its_own_lease(send: Replay, facts: Facts, name: str) -> None:
    request, words = LEASE_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", EVENT_ROWS)
def test_a_node_tells_only_of_its_machines_and_in_its_own_name(send: Replay, facts: Facts, name: str) -> None:
    request, words = EVENT_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", VMI_ROWS)
def test_a_node_says_only_what_is_its_to_say_of_its_machines(send: Replay, facts: Facts, name: str) -> None:
    request, words = VMI_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", MIGRATION_ROWS)
def test_a_node_says_of_a_migration_what_is_its_to_say_at_its_end_of_it(send: Replay, facts: Facts, name: str) -> None:
    request, words = MIGRATION_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", MANAGER_ROWS)
def test_a_node_writes_by_one_name_and_says_nothing_of_who_wrote_what(send: Replay, facts: Facts, name: str) -> None:
    request, words = MANAGER_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", POD_ROWS)
def test_only_virt_controller_says_what_is_a_launcher(send: Replay, facts: Facts, name: str) -> None:
    request, words = POD_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("name", PART_ROWS)
def test_what_is_written_of_a_part_of_a_pod_makes_no_launcher_of_it(send: Replay, facts: Facts, name: str) -> None:
    request, words = PART_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
def test_what_is_written_of_a_part_of_a_pod_says_nothing_else_of_it(send: Replay, part: str) -> None:
    """Kubernetes' own rule, on which those of ours rest that see what of a write is left."""
    mark = {"kubevirt.io/created-by": "1"}
    spec = ephemeral()["spec"] if part == "ephemeralcontainers" else {}
    body = {"metadata": {"labels": mark, "annotations": mark}, "spec": spec}
    before = send.admin("GET", PLAIN)["metadata"]
    answer = send(Request(ROOT, "STRATEGIC", f"{PLAIN}/{part}", body))

    assert answer.is_taken, answer.message
    assert answer.body["metadata"]["labels"] == before["labels"]
    assert "annotations" not in answer.body["metadata"]


@pytest.mark.parametrize("name", PLACING_ROWS)
def test_whoever_places_a_pod_makes_no_launcher_of_it_and_changes_none(send: Replay, facts: Facts, name: str) -> None:
    request, words = PLACING_ROWS[name]
    check(send(request, facts), words)


@pytest.mark.parametrize("before", PHASES)
def test_a_node_moves_phases_as_the_one_table_says(send: Replay, before: str) -> None:
    """Unknown is virt-controller's word: a node that can say so knows better."""
    moved = {}
    for after in PHASES.values():
        request, _unused = status(f"{VMIS}/{before.lower()}/status", None, phase=after)
        moved[after] = send(request).is_taken
    is_handlers = OWNERS[PHASES[before]] is Owner.HANDLER
    expected = {
        after: is_handlers and is_allowed_transition(PHASES[before], after) and (after != UNKNOWN or before == UNKNOWN)
        for after in PHASES.values()
    }

    assert moved == expected


def test_the_api_server_finds_nothing_wrong_with_the_policies(send: Replay) -> None:
    listed: Any = []

    def is_checked() -> bool:
        listed[:] = send.admin("GET", WHERE["ValidatingAdmissionPolicy"])["items"]
        return all(one.get("status", {}).get("observedGeneration") for one in listed)

    wait("policies are checked", is_checked)
    warned = {
        one["metadata"]["name"]: one["status"].get("typeChecking", {}).get("expressionWarnings") for one in listed
    }
    assert not any(warned.values()), warned


def test_a_token_that_the_kubelet_asks_for_names_its_node(send: Replay) -> None:
    """What the rows do by impersonation, with real tokens: one bound to a Pod of the node, one to nothing."""
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    pod = plain("virt-handler")
    pod["spec"] |= {"nodeName": "node-1", "serviceAccountName": "kubevirt-handler"}
    made = send.admin("POST", pods, pod)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "virt-handler", "uid": made["metadata"]["uid"]}
    account = f"{WHERE['ServiceAccount']}/kubevirt-handler/token"

    def token(**spec: Any) -> str:
        return str(send.admin("POST", account, {"spec": {"audiences": [], **spec}})["status"]["token"])

    beat, _unused = LEASE_ROWS["its heartbeat"]
    check(send.with_token(token(boundObjectRef=reference), beat), None)
    check(send.with_token(token(), beat), "names no node")


@pytest.mark.parametrize(
    "said", [managers("kubevirt.io/v1", 9), [{}], [], None], ids=["others", "nobody", "none", "null"]
)
def test_a_status_brings_no_managers_of_its_own(send: Replay, said: Any) -> None:
    """Of an object itself a body can say who wrote what, which the policies bound; of a status the API server knows."""
    body = {"metadata": {"managedFields": said}, "status": {"guestOSInfo": {"name": "x"}}}
    before = send.admin("GET", f"{VMIS}/running")["metadata"]["managedFields"]
    answer = send(Request(HANDLER, "PATCH", f"{VMIS}/running/status", body))

    assert answer.is_taken, answer.message
    told = answer.body["metadata"]["managedFields"]
    assert [one for one in told if one["manager"] != HANDLER.manager] == before


@pytest.mark.parametrize("said", ["more", "nobody", "none", "null"])
@pytest.mark.parametrize("who", [Who(HANDLER.user, "applied"), CONTROLLER], ids=["virt-handler", "virt-controller"])
def test_nothing_that_is_written_of_a_node_makes_anothers_apply_take_something_off(
    send: Replay, who: Who, said: str
) -> None:
    """Whose fields these are decides what an apply that does not say them takes off: a taint, by the same apply."""
    path = f"{NODES}/applied"
    kept = {"metadata": {"name": "applied", "annotations": {"a": "b"}}, "spec": {"taints": [TAINT]}}
    send.admin("PATCH" if send.exists(path) else "POST", path if send.exists(path) else NODES, kept)
    as_ever = Request(ROOT, "APPLY", path, APPLIED_TO_NODE, "kubectl")
    check(send(as_ever, for_real=True), None)
    kubectls = next(one for one in send.admin("GET", path)["metadata"]["managedFields"] if one["manager"] == "kubectl")
    telling: Any = {"more": [with_more(kubectls)], "nobody": [{}], "none": [], "null": None}[said]
    for where in (path, f"{path}/status"):
        for request in ways(who, where, send.admin("GET", path), telling):
            send(request, for_real=True)
    told = send.admin("GET", path)["metadata"].get("managedFields", ())
    check(send(as_ever, for_real=True), None)
    found = send.admin("GET", path)

    assert TAINT in found["spec"].get("taints", ())
    assert found["metadata"]["annotations"]["a"] == "b"
    assert [one["fieldsV1"] for one in told if one["manager"] == "kubectl"] == [kubectls["fieldsV1"]]


def test_kubernetes_ends_launchers_as_ever(send: Replay) -> None:
    """A graceful delete, a forced one, an eviction; an owner that is deleted, and one that orphans."""
    for name in ("kept", "collected"):
        make_instance(send, name, "Running", "node-1")

    def begin(name: str, vmi: str) -> str:
        known = {f"{VMIS}/running": send.admin("GET", f"{VMIS}/{vmi}")}
        assert send(Request(CONTROLLER, "POST", PODS, launcher(known, name)), for_real=True).is_taken
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
