# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are quarantined and which are released, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import Key
from controlplane.virt_controller.quarantine.decide import decide, newly_withheld
from controlplane.virt_controller.quarantine.failure_attribution import AttributedFailure
from controlplane.virt_controller.quarantine.world import ObservedNode, Quarantine, Release, World
from tests.controlplane.virt_controller.builders import NOW

OURS, PERSONS = "20260101T001500Z", "maintenance"
"""A label of ours that ends 900 s after NOW."""


def a_failure(machine: str, namespace: str = "default", at: float = 1000.0) -> AttributedFailure:
    return AttributedFailure(Key(namespace, machine), f"uid of {machine}", machine, "UnexpectedAdmissionError", at)


OFF = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
ENOUGH = (a_failure("a"), a_failure("b"), a_failure("c", "other"))
ALONE = tuple(a_failure(name) for name in "abcd")
ONE_MACHINE = tuple(a_failure("a", namespace) for namespace in ("default", "other", "third"))


def a_node(
    name: str,
    *failures: AttributedFailure,
    mark: str | None = None,
    schedulable: str = "true",
    quarantined_for: float = 0.0,
    **spec: Any,
) -> ObservedNode:
    labels = {"kubevirt.io/schedulable": schedulable}
    if mark is not None:
        labels["virtops.kubevirt/quarantined"] = mark
    meta = {"name": name, "uid": name, "resourceVersion": "1", "labels": labels}
    return ObservedNode(
        node=decode({"metadata": meta, "spec": spec}, Node), failures=failures, quarantined_for=quarantined_for
    )


def a_world(*nodes: ObservedNode, **facts: Any) -> World:
    usual = {"now": NOW, "monotonic": 1000.0, "leading_for": 100.0, "namespaces": 5, "seconds": 900}
    return World(nodes=nodes, **{**usual, **facts})


def bad(*failures: AttributedFailure, **facts: Any) -> ObservedNode:
    return a_node("bad", *(failures or ENOUGH), **facts)


GOOD, OTHER = a_node("good"), a_node("other")
QUARANTINED: dict[str, tuple[World, str | None]] = {
    "three machines of two namespaces": (a_world(bad(), GOOD), "bad"),
    "no failures": (a_world(GOOD, OTHER), None),
    "two machines": (a_world(bad(*ENOUGH[1:]), GOOD), None),
    "a tenant alone": (a_world(bad(*ALONE), GOOD), None),
    "a tenant alone, and no other tenant has machines": (a_world(bad(*ALONE), GOOD, namespaces=1), "bad"),
    "one machine alone, again and again": (a_world(bad(*ONE_MACHINE), GOOD), None),
    "too long ago": (a_world(bad(), GOOD, monotonic=1600.0), None),
    "just not too long ago": (a_world(bad(), GOOD, monotonic=1599.0), "bad"),
    "one of three too long ago": (a_world(bad(*ENOUGH[:2], a_failure("c", "other", 300.0)), GOOD), None),
    "switched off": (a_world(bad(), GOOD, seconds=0), None),
    "quarantined already": (a_world(bad(mark=OURS), GOOD), None),
    "labelled by a user": (a_world(bad(mark=PERSONS), GOOD), None),
    "not schedulable": (a_world(bad(schedulable="false"), GOOD, OTHER), None),
    "cordoned": (a_world(bad(unschedulable=True), GOOD, OTHER), None),
    "the only node": (a_world(bad()), None),
    "two nodes, the other is cordoned": (a_world(bad(), a_node("good", unschedulable=True)), None),
    "two nodes, the other is not schedulable": (a_world(bad(), a_node("good", schedulable="false")), None),
    "two nodes, the other is out of service": (a_world(bad(), a_node("good", taints=[OFF])), None),
    "out of service": (a_world(bad(taints=[OFF]), GOOD, OTHER), None),
    "two nodes, the other has no schedulable label": (
        a_world(bad(), a_node("good", schedulable="")),
        None,
    ),
    "no schedulable label": (a_world(bad(schedulable=""), GOOD, OTHER), None),
    "two nodes, the other is quarantined": (a_world(bad(), a_node("good", mark=OURS)), None),
    "three nodes, one is quarantined": (a_world(bad(), GOOD, a_node("other", mark=OURS)), None),
    "four nodes, one is quarantined": (a_world(bad(), GOOD, OTHER, a_node("more", mark=PERSONS)), "bad"),
    "of two the one with more failures": (
        a_world(bad(), a_node("worse", *ENOUGH, a_failure("d")), GOOD, OTHER),
        "worse",
    ),
    "the one of two with more failed machines, not with more failures": (
        a_world(bad(*ENOUGH, *ENOUGH), a_node("worse", *ENOUGH, a_failure("d")), GOOD, OTHER),
        "worse",
    ),
    "a new leader": (a_world(bad(), GOOD, leading_for=59.0), None),
}


@pytest.mark.parametrize("title", QUARANTINED)
def test_which_node_is_quarantined(title: str) -> None:
    world, expected = QUARANTINED[title]
    actions = [step for step in decide(world).steps if isinstance(step, Quarantine)]
    assert [action.observed.name for action in actions] == ([] if expected is None else [expected])


def test_a_quarantine_names_the_remaining_nodes_and_the_reason() -> None:
    (action,) = decide(a_world(bad(), GOOD, a_node("far", unschedulable=True), OTHER)).steps
    assert isinstance(action, Quarantine)
    assert (action.until, action.staying) == (NOW + 900, ("good", "other"))
    assert "3 machines failed here (UnexpectedAdmissionError)" in action.because


def test_a_new_leader_requeues_when_its_waiting_time_is_over() -> None:
    assert decide(a_world(bad(), GOOD, leading_for=20.0)).requeue_after == 40.0


RELEASED: dict[str, tuple[World, bool, float | None]] = {
    # world, whether the node is released, when to requeue
    "just quarantined": (a_world(bad(mark=OURS), GOOD), False, 900.0),
    "half over": (a_world(bad(mark=OURS), GOOD, now=NOW + 450), False, 450.0),
    "over": (a_world(bad(mark=OURS), GOOD, now=NOW + 900), True, None),
    "observed for its whole time, by a clock that is behind": (
        a_world(bad(mark=OURS, quarantined_for=900.0), GOOD, now=NOW - 86400),
        True,
        None,
    ),
    "a clock that is behind": (a_world(bad(mark=OURS), GOOD, now=NOW - 86400), False, 900.0),
    "labelled by a user": (a_world(bad(mark=PERSONS, quarantined_for=9999.0), GOOD, now=NOW + 9999), False, None),
    "switched off": (a_world(bad(mark=OURS), GOOD, seconds=0), True, None),
    "no label": (a_world(GOOD), False, None),
}


@pytest.mark.parametrize("title", RELEASED)
def test_which_node_is_released(title: str) -> None:
    world, is_released, requeue_after = RELEASED[title]
    plan = decide(world)
    assert ([type(step) for step in plan.steps], plan.requeue_after) == (
        [Release] if is_released else [],
        requeue_after,
    )


def test_a_node_that_is_spared_for_lack_of_others_is_reported_once() -> None:
    world = a_world(bad())
    (node,) = newly_withheld(world)
    assert node.name == "bad"
    assert newly_withheld(a_world(bad(), withheld={"bad": node.failures})) == ()
    assert newly_withheld(a_world(bad(), GOOD)) == ()
    assert newly_withheld(a_world(bad(), leading_for=0.0)) == ()
