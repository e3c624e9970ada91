# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pool decides, case by case; who comes first; what a machine is made of."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects import int_or_percent
from controlplane.api.objects.decode import decode
from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.members.decide import LOOK_AGAIN_SECONDS
from controlplane.virt_controller.members.world import BeginBatch, ConfirmSet
from controlplane.virt_controller.pool.decide import decide
from controlplane.virt_controller.pool.machine import build_vm, change, number_of
from controlplane.virt_controller.pool.member import Member, Run
from controlplane.virt_controller.pool.order import in_order
from controlplane.virt_controller.pool.revision import has_other_volumes, revision, template_hash
from controlplane.virt_controller.pool.world import World
from tests.controlplane.virt_controller.builders import NOW, STAMP

Json = dict[str, Any]
LABELS = {"app": "web"}
READY = [{"type": "Ready", "status": "True"}]
MARK = "virtops.kubevirt/pool-template-hash"
REVISION = "kubevirt.io/vm-pool-revision-name"


def a_pool(replicas: int = 1, *, deleting: bool = False, **spec: Any) -> VirtualMachinePool:
    meta: Json = {"name": "web", "namespace": "default", "uid": "pool", "resourceVersion": "10"}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    template = {"metadata": {"labels": LABELS}, "spec": {"template": {"spec": {"domain": {}}}}}
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": template, **spec}
    return decode({"metadata": meta, "spec": body}, VirtualMachinePool)


def a_member(name: str, *, deleting: bool = False, made: str = STAMP, **parts: Any) -> Member:
    """parts: labels, mark and selector of its template, strategy, revision."""
    labels = {**parts.get("labels", LABELS), REVISION: parts.get("revision", "now")}
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    meta |= {"creationTimestamp": made, **({"deletionTimestamp": STAMP} if deleting else {})}
    template = {
        "metadata": {"annotations": {MARK: parts.get("mark", "a.a")}, "labels": parts.get("inside", {})},
        "spec": {"nodeSelector": parts.get("selector", {})},
    }
    spec = {"runStrategy": parts.get("strategy", "Always"), "template": template}
    return decode({"metadata": meta, "spec": spec}, Member)


def a_run(of: Member, *, ready: bool = True, mark: str = "a.a", deleting: bool = False) -> Run:
    meta: Json = {"name": of.metadata.name, "uid": f"run-{of.metadata.name}", "annotations": {MARK: mark}}
    meta |= {"deletionTimestamp": STAMP} if deleting else {}
    return decode({"metadata": meta, "status": {"phase": "Running", "conditions": READY if ready else []}}, Run)


def a_world(pool: VirtualMachinePool, *members: Member, runs: tuple[Run, ...] = (), **parts: Any) -> World:
    by_uid = {f"uid-{one.metadata.name}": one for one in runs}
    return World(owner=pool, members=members, runs=by_uid, revision="now", now=NOW, **parts)


def done(plan: Plan[Any]) -> list[str]:
    """Say in words what a plan does."""
    (step,) = plan.steps or (IndependentActions(()),)
    actions = step.actions if isinstance(step, IndependentActions) else (step,)
    return [f"{type(one).__name__} {_about(one)}".rstrip() for one in actions]


def _about(action: Any) -> str:
    match action:
        case BeginBatch(numbers=numbers):
            return ",".join(map(str, numbers))
        case ConfirmSet():
            return ""
    member = getattr(action, "member", None)
    return str(action.name) if member is None else str(member.metadata.name)


ZERO, ONE, TWO = (a_member(f"web-{number}") for number in range(3))
GOING = a_member("web-0", deleting=True)
OLD = a_member("web-0", mark="b.a")
OTHER_DISK = a_member("web-0", mark="a.b")


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(a_world(a_pool(1), ZERO), [], id="there"),
        pytest.param(a_world(a_pool(2), free=(0, 1)), ["BeginBatch 0,1"], id="missing"),
        pytest.param(a_world(a_pool(2), ONE, free=(0,)), ["BeginBatch 0"], id="the lowest"),
        pytest.param(
            a_world(a_pool(2), unmade=("web-0", "web-1")), ["CreateMember web-0", "CreateMember web-1"], id="begun"
        ),
        pytest.param(
            a_world(a_pool(2), ZERO, unmade=("web-3",), free=(1,)), ["CreateMember web-3"], id="begun comes first"
        ),
        pytest.param(
            a_world(a_pool(1), unmade=("web-0", "web-1")),
            ["ConfirmMember web-0", "ConfirmMember web-1"],
            id="fewer by now",
        ),
        pytest.param(
            a_world(a_pool(1), unmade=("web-0", "web-1"), absent=frozenset({"web-0", "web-1"})),
            ["CreateMember web-0"],
            id="surely fewer",
        ),
        pytest.param(a_world(a_pool(1), free=(1,), shown=(("web-0", False),)), ["ConfirmMember web-0"], id="unsure"),
        pytest.param(a_world(a_pool(1), unmade=("web-0",), is_current=False), ["ConfirmSet"], id="not current"),
        pytest.param(a_world(a_pool(1), GOING), [], id="one that is going counts"),
        pytest.param(a_world(a_pool(0), ZERO), ["DeleteMember web-0"], id="too many"),
        pytest.param(a_world(a_pool(1), GOING, ONE), [], id="the surplus goes already"),
        pytest.param(a_world(a_pool(0), ZERO, deletes_sent=frozenset({"uid-web-0"})), [], id="its deletion is sent"),
        pytest.param(a_world(a_pool(0), ZERO, has_read_earlier_batches=False), [], id="a new leader waits"),
        pytest.param(a_world(a_pool(2, paused=True)), [], id="paused"),
        pytest.param(a_world(a_pool(2, deleting=True), free=(0, 1)), [], id="deleted"),
        pytest.param(a_world(a_pool(1), problems=("bad",), free=(0,)), [], id="selects nothing"),
        pytest.param(a_world(a_pool(1), a_member("web-0", labels={})), ["ReleaseMember web-0"], id="a stranger"),
        pytest.param(a_world(a_pool(1), a_member("web-0", revision="")), ["UpdateVm web-0"], id="another template"),
        pytest.param(a_world(a_pool(1), a_member("mine", revision="")), [], id="has no number"),
        pytest.param(a_world(a_pool(1), OLD, runs=(a_run(OLD),)), ["RestartVm web-0"], id="runs from another"),
        pytest.param(a_world(a_pool(1), OLD, runs=(a_run(OLD, deleting=True),)), [], id="it goes already"),
        pytest.param(
            a_world(a_pool(1), OTHER_DISK, runs=(a_run(OTHER_DISK),)), ["DeleteMember web-0"], id="other disks"
        ),
        pytest.param(
            a_world(a_pool(1), a_member("web-0", mark="b.a", strategy="Manual"), runs=(a_run(OLD),)),
            [],
            id="nobody would start it again",
        ),
    ],
)
def test_what_is_done(world: World, expected: list[str]) -> None:
    assert done(decide(world)) == expected


def test_a_new_leader_looks_again_by_itself() -> None:
    assert decide(a_world(a_pool(1), has_read_earlier_batches=False)).requeue_after == LOOK_AGAIN_SECONDS


def test_no_more_than_a_burst_at_a_time() -> None:
    many = tuple(a_member(f"web-{number}") for number in range(300))
    assert len(done(decide(a_world(a_pool(0), *many)))) == 250
    (begin,) = decide(a_world(a_pool(900), free=tuple(range(900)))).steps
    assert isinstance(begin, BeginBatch)
    assert begin.numbers == tuple(range(250))


@pytest.mark.parametrize(
    ("most", "ready", "restarted"),
    [(None, "yyy", 3), (1, "yyy", 1), (2, "yyy", 2), ("50%", "yyy", 1), (1, "yyn", 1), (2, "yyn", 2), (1, "nnn", 3)],
)
def test_how_many_are_restarted(most: Any, ready: str, restarted: int) -> None:
    """Who is not ready anyway costs nothing, and counts."""
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(3))
    runs = tuple(a_run(one, ready=word == "y") for one, word in zip(members, ready, strict=True))
    pool = a_pool(3, **({} if most is None else {"maxUnavailable": most}))
    assert len(done(decide(a_world(pool, *members, runs=runs)))) == restarted


def test_who_is_restarted_already_is_not_available() -> None:
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(2))
    runs = tuple(a_run(one) for one in members)
    pool = a_pool(2, maxUnavailable=1)
    assert done(decide(a_world(pool, *members, runs=runs, deletes_sent=frozenset({"run-web-0"})))) == []
    assert done(decide(a_world(pool, *members, runs=runs[1:]))) == []


def test_a_machine_beyond_those_wanted_makes_up_for_none_that_is_not_ready() -> None:
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(4))
    runs = tuple(a_run(one) for one in members[1:])
    pool = a_pool(2, maxUnavailable=1, scaleInStrategy={"unmanaged": {}})
    assert done(decide(a_world(pool, *members, runs=runs))) == []


def test_nobody_is_restarted_while_more_are_not_ready_than_may_be() -> None:
    """Two come up from the new template already."""
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(5))
    fresh = tuple(a_run(one, ready=False, mark="b.a") for one in members[:2])
    runs = (*fresh, *(a_run(one) for one in members[2:]))
    assert done(decide(a_world(a_pool(5, maxUnavailable=1), *members, runs=runs))) == []


def test_halted_machines_are_not_waited_for() -> None:
    halted, old = a_member("web-0", strategy="Halted"), a_member("web-1", mark="b.a")
    world = a_world(a_pool(2, maxUnavailable=1), halted, old, runs=(a_run(old),))
    assert done(decide(world)) == ["RestartVm web-1"]


@pytest.mark.parametrize(
    ("how", "first"),
    [("AscendingOrder", "web-2"), ("DescendingOrder", "web-10"), ("Newest", "web-9"), ("Oldest", "web-10")],
)
def test_who_comes_first(how: str, first: str) -> None:
    made = {"web-2": "2026-01-02T00:00:00Z", "web-9": "2026-01-03T00:00:00Z", "web-10": "2026-01-01T00:00:00Z"}
    members = [a_member(name, made=stamp) for name, stamp in made.items()]
    policy = a_pool(scaleInStrategy={"proactive": {"selectionPolicy": {"sortPolicy": how}}})
    strategy = policy.spec.scale_in_strategy
    assert strategy is not None
    assert strategy.proactive is not None
    assert in_order("web", strategy.proactive.selection_policy, members)[0].metadata.name == first


def test_chance_falls_alike_for_everybody() -> None:
    members = [a_member(f"web-{number}") for number in range(9)]
    found = in_order("web", None, members)
    assert in_order("web", None, reversed(members)) == found
    assert [one.metadata.name for one in found] != sorted(one.metadata.name for one in members)


@pytest.mark.parametrize(
    ("operator", "values", "is_met"),
    [
        ("In", ["a"], True),
        ("In", ["b"], False),
        ("NotIn", ["a"], False),
        ("NotIn", ["b"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["1"], False),
    ],
)
def test_node_selectors_are_compared(operator: str, values: list[str], is_met: bool) -> None:
    asked = {"key": "zone", "operator": operator, "values": values}
    assert _is_chosen(asked, {"zone": "a"}) is is_met
    number = {"key": "n", "operator": "Gt", "values": ["4"]}
    assert _is_chosen(number, {"n": "5"})
    assert not _is_chosen({**number, "operator": "Lt"}, {"n": "5"})
    assert not _is_chosen(number, {})


def _is_chosen(asked: Json, labels: Json) -> bool:
    policy = {"selectors": {"nodeSelectorRequirementMatcher": [asked]}}
    strategy = a_pool(updateStrategy={"proactive": {"selectionPolicy": policy}}).spec.update_strategy
    assert strategy is not None
    assert strategy.proactive is not None
    return bool(in_order("web", strategy.proactive.selection_policy, [a_member("web-0", selector=labels)]))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("web-012", None),
        ("web-", None),
        ("web", None),
        ("other-1", None),
        ("web--1", None),
    ],
)
def test_numbers_in_names(name: str, number: int | None) -> None:
    assert number_of("web", name) == number


@pytest.mark.parametrize(("value", "count"), [(3, 3), ("25%", 2), ("100%", 10), ("1%", 1), ("nonsense", 10), (0, 10)])
def test_shares(value: Any, count: int) -> None:
    assert int_or_percent.of(value, 10) == count


VOLUMES: list[Json] = [
    {"name": "a", "dataVolume": {"name": "disk"}},
    {"name": "b", "persistentVolumeClaim": {"claimName": "disk"}},
    {"name": "c", "persistentVolumeClaim": {"claimName": "shared"}},
    {"name": "d", "configMap": {"name": "map"}},
    {"name": "e", "secret": {"secretName": "word"}},
    {"name": "f", "cloudInitNoCloud": {"secretRef": {"name": "user"}, "networkDataSecretRef": {"name": "net"}}},
]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, ["disk-7", "disk-7", "shared", "map", "word", "user", "net"]),
        ({"appendIndexToConfigMapRefs": True}, ["disk-7", "disk-7", "shared", "map-7", "word", "user", "net"]),
        ({"appendIndexToSecretRefs": True}, ["disk-7", "disk-7", "shared", "map", "word-7", "user-7", "net-7"]),
    ],
)
def test_names_that_differ_between_machines(how: Json, expected: list[str]) -> None:
    spec = {
        "template": {"spec": {"domain": {}, "volumes": VOLUMES}},
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {}}],
    }
    vm = build_vm(a_pool(nameGeneration=how), {"spec": spec}, 7)
    a, b, c, d, e, f = vm["spec"]["template"]["spec"]["volumes"]
    found = [a["dataVolume"]["name"], b["persistentVolumeClaim"]["claimName"], c["persistentVolumeClaim"]["claimName"]]
    found += [d["configMap"]["name"], e["secret"]["secretName"]]
    found += [f["cloudInitNoCloud"]["secretRef"]["name"], f["cloudInitNoCloud"]["networkDataSecretRef"]["name"]]
    assert found == expected
    assert vm["spec"]["dataVolumeTemplates"][0]["metadata"]["name"] == "disk-7"
    assert spec["dataVolumeTemplates"][0]["metadata"] == {"name": "disk"}, "the template stays as it is"


def test_a_change_keeps_who_a_machine_is_for_its_guest() -> None:
    template = {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}, "hostname": "new"}}}}
    firmware = {"uuid": "u", "serial": "s"}
    old = {
        "metadata": {"name": "web-0", "labels": {"mine": "yes"}, "annotations": {"note": "x"}},
        "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"firmware": firmware}, "subdomain": "old"}}},
    }
    patch = change(old, build_vm(a_pool(), template, 0))
    assert patch["metadata"]["labels"]["mine"] is None
    assert patch["metadata"]["annotations"] == {"note": None}
    assert patch["spec"]["runStrategy"] == "Always"
    assert patch["spec"]["template"]["spec"] == {"hostname": "new", "subdomain": None}


def test_a_revision_is_a_labels_value_and_follows_from_the_template() -> None:
    one, same = {"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1}}
    assert revision("web", one) == revision("web", same)
    assert revision("web", one) != revision("web", {"spec": {"a": 2}})
    assert len(revision("w" * 240, one)) <= 63


def test_which_part_of_a_template_differs() -> None:
    plain = template_hash({"spec": {"template": {"x": 1}}})
    assert not has_other_volumes(plain, template_hash({"spec": {"template": {"x": 2}}}))
    assert has_other_volumes(plain, template_hash({"spec": {"template": {"x": 1}, "dataVolumeTemplates": [{}]}}))
    assert not has_other_volumes("", plain), "what says nothing is no reason to delete a disk"
