# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of the pool controller, the order of members, and manifests of VMs."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects import int_or_percent
from controlplane.api.objects.decode import decode
from controlplane.engine.plan import IndependentActions
from controlplane.virt_controller.members.decide import LOOK_AGAIN_SECONDS
from controlplane.virt_controller.members.world import DeleteMember
from controlplane.virt_controller.pool.decide import decide
from controlplane.virt_controller.pool.machine import build_vm, change, number_of
from controlplane.virt_controller.pool.member import Member
from controlplane.virt_controller.pool.order import in_order
from controlplane.virt_controller.pool.revision import has_other_volumes, revision, template_hash
from controlplane.virt_controller.pool.world import World
from tests.controlplane.virt_controller.members.plans import actions_of
from tests.controlplane.virt_controller.pool.stage import Json, a_member, a_pool, a_run, a_world

ZERO, ONE, TWO = (a_member(f"web-{number}") for number in range(3))
GOING = a_member("web-0", deleting=True)
OLD = a_member("web-0", mark="b.a")
OTHER_DISK = a_member("web-0", mark="a.b")


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(a_world(a_pool(1), ZERO), [], id="complete"),
        pytest.param(a_world(a_pool(2), free=(0, 1)), ["BeginBatch 0,1"], id="missing"),
        pytest.param(a_world(a_pool(2), ONE, free=(0,)), ["BeginBatch 0"], id="the lowest number"),
        pytest.param(
            a_world(a_pool(2), unmade=("web-0", "web-1")), ["CreateMember web-0", "CreateMember web-1"], id="batch"
        ),
        pytest.param(
            a_world(a_pool(2), ZERO, unmade=("web-3",), free=(1,)), ["CreateMember web-3"], id="the batch first"
        ),
        pytest.param(a_world(a_pool(1), GOING), [], id="a deleting member counts"),
        pytest.param(a_world(a_pool(0), ZERO), ["DeleteMember web-0"], id="surplus"),
        pytest.param(a_world(a_pool(3), GOING, ONE, TWO), [], id="no surplus: a deleting member is replaced later"),
        pytest.param(
            a_world(a_pool(2), GOING, free=(1,), shown=(("web-0", False),)),
            ["ConfirmMember web-0"],
            id="unsure: a deleting member proves nothing",
        ),
        pytest.param(a_world(a_pool(1), GOING, ONE), [], id="the surplus is being deleted"),
        pytest.param(a_world(a_pool(0), ZERO, deletes_sent=frozenset({"uid-web-0"})), [], id="its deletion was sent"),
        pytest.param(a_world(a_pool(0), ZERO, has_read_earlier_batches=False), [], id="a new leader waits"),
        pytest.param(
            a_world(a_pool(1), a_member("web-0", revision=""), has_read_earlier_batches=False),
            ["UpdateVm web-0"],
            id="a new leader updates",
        ),
        pytest.param(a_world(a_pool(2, paused=True)), [], id="paused"),
        pytest.param(a_world(a_pool(2, deleting=True), free=(0, 1)), [], id="deleting"),
        pytest.param(a_world(a_pool(1), problems=("bad",), free=(0,)), [], id="invalid selector"),
        pytest.param(a_world(a_pool(1), a_member("web-0", labels={})), ["ReleaseMember web-0"], id="unselected"),
        pytest.param(a_world(a_pool(1), a_member("web-0", revision="")), ["UpdateVm web-0"], id="another template"),
        pytest.param(a_world(a_pool(1), a_member("mine", revision="")), [], id="without a number"),
        pytest.param(a_world(a_pool(1), OLD, runs=(a_run(OLD),)), ["RestartVm web-0"], id="runs from another template"),
        pytest.param(a_world(a_pool(1), OLD, runs=(a_run(OLD, deleting=True),)), [], id="its VMI is ending"),
        pytest.param(
            a_world(a_pool(1), OTHER_DISK, runs=(a_run(OTHER_DISK),)), ["DeleteMember web-0"], id="other DataVolumes"
        ),
        pytest.param(
            a_world(a_pool(1), a_member("web-0", mark="b.a", strategy="Manual"), runs=(a_run(OLD),)),
            [],
            id="not started again by itself",
        ),
    ],
)
def test_actions(world: World, expected: list[str]) -> None:
    assert actions_of(decide(world)) == expected


def test_a_new_leader_requeues_until_the_earlier_batches_are_read() -> None:
    assert decide(a_world(a_pool(1), has_read_earlier_batches=False)).requeue_after == LOOK_AGAIN_SECONDS


def test_a_batch_has_a_limited_number_of_members() -> None:
    assert actions_of(decide(a_world(a_pool(900), free=tuple(range(900))))) == [
        f"BeginBatch {','.join(map(str, range(250)))}"
    ]


OTHERS_FIRST = {"selectionPolicy": {"sortPolicy": "DescendingOrder"}}
SPARE = {"selectionPolicy": {"selectors": {"labelSelector": {"matchLabels": {"spare": "true"}}}}}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"unmanaged": {}}, []),
        ({"opportunistic": {}}, []),
        ({}, ["web-1"]),
        ({"proactive": {}}, ["web-1"]),
        ({"proactive": OTHERS_FIRST}, ["web-2"]),
        ({"proactive": SPARE}, ["web-0"]),
    ],
    ids=["unmanaged", "opportunistic", "none", "proactive", "a sort policy", "selectors"],
)
def test_the_scale_in_strategy_selects_the_surplus(strategy: Json, expected: list[str]) -> None:
    members = (a_member("web-0", inside={"spare": "true"}), ONE, TWO)
    world = a_world(a_pool(2, scaleInStrategy=strategy), *members)
    assert actions_of(decide(world)) == [f"DeleteMember {name}" for name in expected]


@pytest.mark.parametrize(
    ("strategy", "updated", "restarted"),
    [
        ({"unmanaged": {}}, [], []),
        ({"opportunistic": {}}, ["web-0", "web-1"], []),
        ({"proactive": OTHERS_FIRST}, ["web-1", "web-0"], ["web-1"]),
        ({"proactive": SPARE}, ["web-0"], ["web-0"]),
    ],
    ids=["unmanaged", "opportunistic", "a sort policy", "selectors"],
)
def test_the_update_strategy_selects_what_is_updated_and_restarted(
    strategy: Json, updated: list[str], restarted: list[str]
) -> None:
    pool = a_pool(2, updateStrategy=strategy, maxUnavailable=1)
    spare: Json = {"inside": {"spare": "true"}}
    outdated = (a_member("web-0", revision="old", **spare), a_member("web-1", revision="old"))
    assert sorted(actions_of(decide(a_world(pool, *outdated)))) == sorted(f"UpdateVm {name}" for name in updated)
    members = (a_member("web-0", mark="b.a", **spare), a_member("web-1", mark="b.a"))
    world = a_world(pool, *members, runs=tuple(a_run(member) for member in members))
    assert actions_of(decide(world)) == [f"RestartVm {name}" for name in restarted]


@pytest.mark.parametrize(
    ("most", "ready", "restarted"),
    [
        (None, "yyy", 3),
        (1, "yyy", 1),
        (2, "yyy", 2),
        ("50%", "yyy", 1),
        (1, "yyn", 1),
        (2, "yyn", 2),
        (2, "nyy", 2),
        (2, "yny", 2),
        (1, "nnn", 3),
    ],
)
def test_restarts_are_limited_by_max_unavailable(most: Any, ready: str, restarted: int) -> None:
    """VMs that are not ready are restarted at once, and count as unavailable."""
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(3))
    runs = tuple(a_run(member, ready=word == "y") for member, word in zip(members, ready, strict=True))
    pool = a_pool(3, **({} if most is None else {"maxUnavailable": most}))
    assert len(actions_of(decide(a_world(pool, *members, runs=runs)))) == restarted


def test_a_vm_that_is_being_restarted_is_unavailable() -> None:
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(2))
    runs = tuple(a_run(member) for member in members)
    pool = a_pool(2, maxUnavailable=1)
    assert actions_of(decide(a_world(pool, *members, runs=runs, restarts_sent=frozenset({"run-web-0"})))) == []
    assert actions_of(decide(a_world(pool, *members, runs=runs[1:]))) == []


def test_a_vm_that_is_being_deleted_is_unavailable() -> None:
    members = (a_member("web-0", deleting=True), *(a_member(f"web-{number}", mark="b.a") for number in (1, 2)))
    runs = tuple(a_run(member) for member in members[1:])
    assert actions_of(decide(a_world(a_pool(3, maxUnavailable=1), *members, runs=runs))) == []


def test_a_vm_with_other_data_volumes_is_deleted_as_an_update() -> None:
    """A refusal is reported as FailedUpdate, not as a failed scale-in."""
    (step,) = decide(a_world(a_pool(1), OTHER_DISK, runs=(a_run(OTHER_DISK),))).steps
    assert isinstance(step, IndependentActions)
    (delete,) = step.actions
    assert isinstance(delete, DeleteMember)
    assert delete.is_update


@pytest.mark.parametrize(
    ("spec", "is_kept_running"),
    [
        ({"runStrategy": "Always"}, True),
        ({"runStrategy": "Manual", "running": True}, False),
        ({"running": True}, True),
        ({"running": False}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_vm_is_kept_running_by_its_run_strategy_or_running(spec: Json, is_kept_running: bool) -> None:
    assert decode({"spec": spec}, Member).is_kept_running is is_kept_running


def test_a_surplus_vm_does_not_replace_an_unavailable_one() -> None:
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(4))
    runs = tuple(a_run(member) for member in members[1:])
    pool = a_pool(2, maxUnavailable=1, scaleInStrategy={"unmanaged": {}})
    assert actions_of(decide(a_world(pool, *members, runs=runs))) == []


def test_no_vm_is_restarted_while_too_many_are_unavailable() -> None:
    """Two VMs already start from the new template."""
    members = tuple(a_member(f"web-{number}", mark="b.a") for number in range(5))
    fresh = tuple(a_run(member, ready=False, mark="b.a") for member in members[:2])
    runs = (*fresh, *(a_run(member) for member in members[2:]))
    assert actions_of(decide(a_world(a_pool(5, maxUnavailable=1), *members, runs=runs))) == []


def test_a_halted_vm_is_not_unavailable() -> None:
    halted, old = a_member("web-0", strategy="Halted"), a_member("web-1", mark="b.a")
    world = a_world(a_pool(2, maxUnavailable=1), halted, old, runs=(a_run(old),))
    assert actions_of(decide(world)) == ["RestartVm web-1"]


@pytest.mark.parametrize(
    ("how", "first"),
    [("AscendingOrder", "web-2"), ("DescendingOrder", "web-10"), ("Newest", "web-9"), ("Oldest", "web-10")],
)
def test_scale_in_order_follows_the_sort_policy(how: str, first: str) -> None:
    created = {"web-2": "2026-01-02T00:00:00Z", "web-9": "2026-01-03T00:00:00Z", "web-10": "2026-01-01T00:00:00Z"}
    members = [a_member(name, made=stamp) for name, stamp in created.items()]
    policy = a_pool(scaleInStrategy={"proactive": {"selectionPolicy": {"sortPolicy": how}}})
    strategy = policy.spec.scale_in_strategy
    assert strategy is not None
    assert strategy.proactive is not None
    assert in_order("web", strategy.proactive.selection_policy, members)[0].metadata.name == first


def test_the_random_order_is_the_same_for_every_process() -> None:
    members = [a_member(f"web-{number}") for number in range(9)]
    ordered = in_order("web", None, members)
    assert in_order("web", None, reversed(members)) == ordered
    assert [member.metadata.name for member in ordered] != sorted(member.metadata.name for member in members)


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
def test_node_selector_requirements(operator: str, values: list[str], is_met: bool) -> None:
    requirement = {"key": "zone", "operator": operator, "values": values}
    assert _is_selected(requirement, {"zone": "a"}) is is_met
    number = {"key": "n", "operator": "Gt", "values": ["4"]}
    assert _is_selected(number, {"n": "5"})
    assert not _is_selected({**number, "operator": "Lt"}, {"n": "5"})
    assert not _is_selected(number, {})


def _is_selected(requirement: Json, labels: Json) -> bool:
    policy = {"selectors": {"nodeSelectorRequirementMatcher": [requirement]}}
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
        ("7", None),
    ],
)
def test_numbers_in_names(name: str, number: int | None) -> None:
    assert number_of("web", name) == number


@pytest.mark.parametrize(("value", "count"), [(3, 3), ("25%", 2), ("100%", 10), ("1%", 1), ("nonsense", 10), (0, 10)])
def test_int_or_percent_is_a_number_of_the_members(value: Any, count: int) -> None:
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
def test_names_of_disks_and_secrets_include_the_number_of_the_vm(how: Json, expected: list[str]) -> None:
    spec = {
        "template": {"spec": {"domain": {}, "volumes": VOLUMES}},
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {}}],
    }
    vm = build_vm(a_pool(nameGeneration=how), {"spec": spec}, 7)
    a, b, c, d, e, f = vm["spec"]["template"]["spec"]["volumes"]
    names = [a["dataVolume"]["name"], b["persistentVolumeClaim"]["claimName"], c["persistentVolumeClaim"]["claimName"]]
    names += [d["configMap"]["name"], e["secret"]["secretName"]]
    names += [f["cloudInitNoCloud"]["secretRef"]["name"], f["cloudInitNoCloud"]["networkDataSecretRef"]["name"]]
    assert names == expected
    assert vm["spec"]["dataVolumeTemplates"][0]["metadata"]["name"] == "disk-7"
    assert spec["dataVolumeTemplates"][0]["metadata"] == {"name": "disk"}, "the template is not changed"


def test_a_change_keeps_the_identity_of_the_guest() -> None:
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


def test_a_revision_is_a_hash_of_the_template_and_valid_as_a_label() -> None:
    first, same = {"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1}}
    assert revision("web", first) == revision("web", same)
    assert revision("web", first) != revision("web", {"spec": {"a": 2}})
    assert len(revision("w" * 240, first)) <= 63


def test_differences_of_data_volumes() -> None:
    plain = template_hash({"spec": {"template": {"x": 1}}})
    assert not has_other_volumes(plain, template_hash({"spec": {"template": {"x": 2}}}))
    assert has_other_volumes(plain, template_hash({"spec": {"template": {"x": 1}, "dataVolumeTemplates": [{}]}}))
    assert not has_other_volumes("", plain), "a missing hash is no reason to delete a disk"
