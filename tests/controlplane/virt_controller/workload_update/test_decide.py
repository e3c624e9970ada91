# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances are labelled, migrated and evicted until all run in the deployed launcher, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import WORKLOAD_UPDATE_MIGRATION, WORKLOAD_UPDATE_REASON

from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirt
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.resources import Key
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import IndependentActions
from controlplane.virt_controller.workload_update.decide import LABELS, decide
from controlplane.virt_controller.workload_update.instance_view import InstanceView
from controlplane.virt_controller.workload_update.status import derive_status
from controlplane.virt_controller.workload_update.world import OUTDATED, Candidate, World
from tests.controlplane.virt_controller.builders import NOW
from tests.controlplane.virt_controller.migration.worlds import a_migration

MOVE, EVICT, BOTH, NEITHER = ["LiveMigrate"], ["Evict"], ["LiveMigrate", "Evict"], []  # type: ignore[var-annotated]


def a_kubevirt(methods: list[str], *, last: float | None = None, limits: Any = None, **strategy: Any) -> KubeVirt:
    status = {"phase": "Deployed"} | ({} if last is None else {"lastWorkloadEviction": format_timestamp(last)})
    spec = {"workloadUpdateStrategy": {"workloadUpdateMethods": methods, **strategy}}
    spec["configuration"] = {"migrations": limits or {}}
    return decode_kubevirt({"metadata": {"name": "kubevirt", "namespace": "kubevirt"}, "spec": spec, "status": status})


def an_instance(name: str = "web", **changes: Any) -> InstanceView:
    usual = {"uid": f"{name}-uid", "version": "1", "node": "node-1", "pod": f"{name}-pod", "is_outdated": True}
    return InstanceView(key=Key("default", name), **{**usual, "is_labelled": True, "is_running": True, **changes})


def a_candidate(name: str = "web", *migrations: VirtualMachineInstanceMigration, **changes: Any) -> Candidate:
    facts = {
        name: changes.pop(name) for name in ("refusals", "backs_off_for", "is_served", "is_evicted") if name in changes
    }
    return Candidate(instance=an_instance(name, **changes), migrations=migrations, **facts)


def an_update(
    number: int, phase: str = "Failed", ago: float = 0.0, *, reason: str | None = None
) -> VirtualMachineInstanceMigration:
    name = f"kubevirt-workload-update-webuid-{number}"
    notes = {WORKLOAD_UPDATE_MIGRATION: "", **({} if reason is None else {WORKLOAD_UPDATE_REASON: reason})}
    return a_migration(phase, uid=name, name=name, annotations=notes, entered=format_timestamp(NOW - ago))


def planned(kubevirt: KubeVirt, *candidates: Candidate, **facts: Any) -> str:
    plan = decide(World(kubevirt=kubevirt, candidates=candidates, now=NOW, **facts))
    actions = [
        step for step in plan.steps for step in (step.actions if isinstance(step, IndependentActions) else (step,))
    ]
    return "+".join(type(step).__name__ for step in actions) or "-"


CAN = {"is_migratable": True}
LESS = {"is_outdated": False, "is_labelled": False, "reason": "less memory", **CAN}
TABLE: dict[str, tuple[Candidate, str, str, str]] = {
    # for each: the action with LiveMigrate, with Evict, with both
    "migratable": (a_candidate(**CAN), "CreateMigration", "BeginBatch+Evict", "CreateMigration"),
    "not migratable": (a_candidate(), "-", "BeginBatch+Evict", "BeginBatch+Evict"),
    "a user's migration has failed": (
        a_candidate("web", a_migration("Failed"), **CAN),
        "CreateMigration",
        "BeginBatch+Evict",
        "CreateMigration",
    ),
    "our migration failed 19 s ago": (a_candidate("web", an_update(1, ago=19), **CAN), "-", "BeginBatch+Evict", "-"),
    "our migration failed 20 s ago": (
        a_candidate("web", an_update(1, ago=20), **CAN),
        "CreateMigration",
        "BeginBatch+Evict",
        "CreateMigration",
    ),
    "two of ours failed, the last 39 s ago": (
        a_candidate("web", an_update(1, ago=90), an_update(2, ago=39), **CAN),
        "-",
        "BeginBatch+Evict",
        "-",
    ),
    "up to date, another reason": (
        a_candidate(is_outdated=False, is_labelled=False, reason="more memory", **CAN),
        "CreateMigration",
        "-",
        "CreateMigration",
    ),
}
CURRENT = {"is_outdated": False, "is_labelled": False}
WITH_ANY_METHOD: dict[str, tuple[Candidate, str]] = {
    "not running": (a_candidate(is_running=False, **CAN), "-"),
    "without exactly one Pod": (a_candidate(pod="", **CAN), "-"),
    "migrating or being evacuated": (a_candidate(is_leaving=True, **CAN), "-"),
    "a user's migration runs": (a_candidate("web", a_migration("Running"), **CAN), "-"),
    "its node has another virt-handler": (a_candidate(is_served=False, **CAN), "-"),
    "evicted": (a_candidate(is_evicted=True), "-"),
    "refused, in back-off": (a_candidate(backs_off_for=5.0, **CAN), "-"),
    "another reason, not migratable": (a_candidate(reason="more memory", **CURRENT), "-"),
    "up to date, still labelled": (a_candidate(is_outdated=False, **CAN), "Label"),
    "not labelled yet": (a_candidate(is_labelled=False), "Label"),
    "up to date, ours is pending": (a_candidate("web", an_update(1, "Pending"), **CURRENT), "DropMigration"),
    "up to date, no node for ours": (a_candidate("web", an_update(1, "Scheduling"), **CURRENT), "DropMigration"),
    "up to date, the launcher of ours is up": (a_candidate("web", an_update(1, "Scheduled"), **CURRENT), "-"),
    "up to date, a user's is pending": (a_candidate("web", a_migration("Pending"), **CURRENT), "-"),
    "another reason than that of ours": (
        a_candidate("web", an_update(1, "Scheduling", reason="more memory"), **LESS),
        "DropMigration",
    ),
    "the reason of ours": (a_candidate("web", an_update(1, "Scheduling", reason="less memory"), **LESS), "-"),
    "outdated, ours is pending for that": (a_candidate("web", an_update(1, "Pending", reason=OUTDATED), **CAN), "-"),
    "ours without a reason is pending": (a_candidate("web", an_update(1, "Pending"), **LESS), "-"),
}


@pytest.mark.parametrize("case", TABLE)
def test_which_action_a_candidate_gets(case: str) -> None:
    candidate, *expected = TABLE[case]
    assert [planned(a_kubevirt(methods), candidate) for methods in (MOVE, EVICT, BOTH)] == expected


@pytest.mark.parametrize("case", WITH_ANY_METHOD)
def test_which_action_a_candidate_gets_with_any_method(case: str) -> None:
    candidate, expected = WITH_ANY_METHOD[case]
    assert {planned(a_kubevirt(methods), candidate) for methods in (MOVE, EVICT, BOTH)} == {expected}


def test_without_a_method_instances_are_only_labelled() -> None:
    assert planned(a_kubevirt(NEITHER), a_candidate(is_labelled=False, **CAN)) == "Label"


def test_during_a_rollout_of_virt_handler_instances_are_only_labelled() -> None:
    candidates = (a_candidate(is_labelled=False, **CAN), a_candidate("a", **CAN), a_candidate("b"))
    assert planned(a_kubevirt(BOTH), *candidates, outdated_nodes=("node-2",)) == "Label"
    waiting = World(
        kubevirt=a_kubevirt(BOTH, last=NOW - 10), candidates=candidates, now=NOW, outdated_nodes=("node-2",)
    )
    assert decide(waiting).requeue_after is None


@pytest.mark.parametrize("limits", [{"parallelMigrationsPerCluster": 3}, {"parallelOutboundMigrationsPerNode": 3}])
def test_parallel_migrations_are_limited(limits: Any) -> None:
    many = [a_candidate(f"m{number}", **CAN) for number in range(9)]
    usual = {"parallelMigrationsPerCluster": 5, "parallelOutboundMigrationsPerNode": 5}
    kubevirt = a_kubevirt(MOVE, limits={**usual, **limits})
    assert planned(kubevirt, *many) == "+".join(["CreateMigration"] * 3)
    assert planned(kubevirt, *many, under_way=2, leaving={"node-1": 2}) == "CreateMigration"
    assert planned(kubevirt, *many, under_way=5, leaving={"node-1": 5}) == "-"


def test_batches_have_the_size_and_interval_of_the_strategy() -> None:
    many = [a_candidate(f"m{number}") for number in range(20)]
    assert planned(a_kubevirt(EVICT), *many).count("Evict") == 10
    assert planned(a_kubevirt(EVICT, batchEvictionSize=3), *many).count("Evict") == 3
    assert planned(a_kubevirt(EVICT, batchEvictionSize=0), *many) == "-"
    assert planned(a_kubevirt(EVICT, last=NOW - 59), *many) == "-"
    assert planned(a_kubevirt(EVICT, last=NOW - 60), *many).count("Evict") == 10
    assert planned(a_kubevirt(EVICT, last=NOW - 20, batchEvictionInterval="20s"), *many).count("Evict") == 10
    assert planned(a_kubevirt(EVICT, last=NOW - 4, batchEvictionInterval="0s"), *many) == "-"
    assert planned(a_kubevirt(EVICT, last=NOW + 59, batchEvictionInterval="junk"), *many) == "-"
    assert planned(a_kubevirt(EVICT, last=NOW + 61), *many).count("Evict") == 10, "a clock that was ahead"


def test_it_is_requeued_at_the_end_of_a_back_off() -> None:
    def look(methods: list[str], *candidates: Candidate, **options: Any) -> float | None:
        return decide(World(kubevirt=a_kubevirt(methods, **options), candidates=candidates, now=NOW)).requeue_after

    assert look(EVICT, a_candidate(), last=NOW - 10) == 50
    assert look(EVICT, a_candidate(), last=NOW + 50) == 60
    assert look(EVICT, a_candidate(), last=NOW - 10, batchEvictionSize=0) is None
    assert look(MOVE, a_candidate("web", an_update(1, ago=-19), **CAN)) == 20
    assert look(MOVE, a_candidate("web", an_update(1, ago=-86_400), **CAN)) is None
    assert look(MOVE, a_candidate("web", an_update(1, ago=5), **CAN)) == 15
    assert look(MOVE, a_candidate(backs_off_for=7.0)) == 7
    assert look(MOVE, a_candidate(**CAN)) is None
    assert look(EVICT, a_candidate(is_evicted=True), last=NOW - 10) is None


def test_instances_with_fewer_failures_come_first() -> None:
    kubevirt = a_kubevirt(MOVE, limits={"parallelMigrationsPerCluster": 1})
    candidates = (a_candidate("a", refusals=1, **CAN), a_candidate("b", **CAN))
    (step,) = decide(World(kubevirt=kubevirt, candidates=candidates, now=NOW)).steps
    assert isinstance(step, IndependentActions)
    assert [step.instance.key.name for step in step.actions if hasattr(step, "instance")] == ["b"]


def test_one_pass_writes_a_limited_number_of_labels() -> None:
    many = [a_candidate(f"m{number}", is_labelled=False) for number in range(LABELS + 1)]
    assert planned(a_kubevirt(NEITHER), *many).count("Label") == LABELS


@pytest.mark.parametrize("change", [{"deletionTimestamp": "2026-01-01T00:00:00Z"}, None])
def test_a_control_plane_that_is_not_deployed_updates_nothing(change: Any) -> None:
    meta = {"name": "kubevirt", **(change or {})}
    status = {"phase": "Deployed" if change else "Deploying"}
    spec = {"workloadUpdateStrategy": {"workloadUpdateMethods": BOTH}}
    kubevirt = decode_kubevirt({"metadata": meta, "spec": spec, "status": status})
    assert planned(kubevirt, a_candidate(is_labelled=False, **CAN)) == "-"


def test_names_are_numbered_from_the_existing_migrations() -> None:
    assert a_candidate().next_name == "kubevirt-workload-update-webuid-1"
    assert a_candidate("web", an_update(3), a_migration()).next_name == "kubevirt-workload-update-webuid-4"


def test_outdated_vmis_are_counted_and_a_back_off_is_reported_once() -> None:
    candidates = (
        a_candidate("web", an_update(1, ago=5), **CAN),
        a_candidate("stopped", is_running=False),
        a_candidate("new", is_outdated=False),
    )
    world = World(kubevirt=a_kubevirt(MOVE), candidates=candidates, now=NOW)
    report = derive_status(world)
    assert report is not None
    assert report.status is not None
    assert report.status.outdated_virtual_machine_instance_workloads == 1
    (back_off,) = report.back_offs
    again = derive_status(
        World(kubevirt=world.kubevirt, candidates=candidates, now=NOW, announced=frozenset({back_off.after}))
    )
    assert again is not None
    assert again.back_offs == ()


def test_a_count_of_zero_is_written() -> None:
    report = derive_status(World(kubevirt=a_kubevirt(NEITHER), now=NOW))
    assert report is not None
    assert report.status is not None
    assert report.status.outdated_virtual_machine_instance_workloads == 0
