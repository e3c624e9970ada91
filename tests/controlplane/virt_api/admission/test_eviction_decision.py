# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evictions of launcher Pods: every eviction strategy, and the states in which the strategy does not apply."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.phase import FAILED, RUNNING, SCHEDULING, SUCCEEDED
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_api.admission import eviction_decision as eviction
from controlplane.virt_api.admission.eviction_decision import Allow, Decision, Deny, Evacuate, decide_eviction

TRIGGERED = 'Eviction triggered evacuation of VMI "ns/web"'
OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "controller": True}


def a_pod(*, uid: str = "u", node: str = "node-1", phase: str = "Running") -> Pod:
    metadata = {
        "name": "virt-launcher-web-u-1",
        "namespace": "ns",
        "uid": "source",
        "ownerReferences": [OWNER | {"uid": uid}],
    }
    return decode({"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}, Pod)


def a_vmi(strategy: str | None, *, migratable: bool | None = None, **status: Any) -> VirtualMachineInstance:
    condition = {"type": "LiveMigratable", "status": str(migratable), "message": "its disk is local"}
    spec = {"domain": {"devices": {}}, **({"evictionStrategy": strategy} if strategy else {})}
    conditions = [] if migratable is None else [condition]
    whole = {
        "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
        "spec": spec,
        "status": {"phase": RUNNING, "nodeName": "node-1", "conditions": conditions, **status},
    }
    return decode_vmi(msgspec.json.encode(whole))


def decide(vmi: VirtualMachineInstance | None, default_strategy: str | None = None, **pod: str) -> Decision:
    return decide_eviction(a_pod(**pod), vmi, default_strategy)


ROWS: dict[tuple[str | None, bool | None], Decision | type[Deny]] = {
    (None, None): Allow(),
    (None, True): Allow(),
    ("None", False): Allow(),
    ("None", True): Allow(),
    ("LiveMigrate", None): Deny,
    ("LiveMigrate", False): Deny,
    ("LiveMigrate", True): Evacuate("node-1", TRIGGERED),
    ("LiveMigrateIfPossible", None): Allow(),
    ("LiveMigrateIfPossible", False): Allow(),
    ("LiveMigrateIfPossible", True): Evacuate("node-1", TRIGGERED),
    ("External", None): Evacuate("node-1", TRIGGERED),
    ("External", False): Evacuate("node-1", TRIGGERED),
    ("External", True): Evacuate("node-1", TRIGGERED),
}


@pytest.mark.parametrize(("strategy", "migratable"), ROWS, ids=str)
@pytest.mark.parametrize("is_default", [False, True], ids=["its own", "the cluster's"])
def test_each_strategy_for_each_value_of_live_migratable(
    strategy: str | None, migratable: bool | None, is_default: bool
) -> None:
    own, default_strategy = (None, strategy) if is_default else (strategy, None)
    decision = decide(a_vmi(own, migratable=migratable), default_strategy)
    expected = ROWS[strategy, migratable]

    assert isinstance(decision, Deny) if expected is Deny else decision == expected


def test_the_vmis_strategy_overrides_the_clusters() -> None:
    assert decide(a_vmi("None"), "LiveMigrate") == Allow()
    assert isinstance(decide(a_vmi("LiveMigrate"), "None"), Deny)


def test_a_denial_has_the_reason_and_the_remedy() -> None:
    decision = decide(a_vmi("LiveMigrate", migratable=False))

    assert isinstance(decision, Deny)
    assert "VMI ns/web" in decision.message
    assert "its disk is local" in decision.message
    assert "stop it" in decision.message


@pytest.mark.parametrize(
    ("vmi", "pod"),
    [
        (None, {}),
        (a_vmi("LiveMigrate"), {"uid": "another"}),
        (a_vmi("LiveMigrate"), {"phase": "Succeeded"}),
        (a_vmi("LiveMigrate"), {"phase": "Failed"}),
        (a_vmi("LiveMigrate", phase=SUCCEEDED), {}),
        (a_vmi("External", phase=FAILED), {}),
    ],
    ids=["no instance", "another's Pod", "Pod done", "Pod failed", "run done", "run failed"],
)
def test_a_pod_without_a_running_guest_may_be_evicted(vmi: VirtualMachineInstance | None, pod: dict[str, str]) -> None:
    assert decide(vmi, **pod) == Allow()


def test_the_pod_of_a_deleted_vmi_may_be_evicted() -> None:
    deleting = a_vmi("LiveMigrate")
    meta = msgspec.structs.replace(deleting.metadata, deletion_timestamp="2026-01-01T00:00:00Z")

    assert decide(msgspec.structs.replace(deleting, metadata=meta)) == Allow()


def test_an_eviction_of_a_marked_vmi_is_in_progress() -> None:
    assert decide(a_vmi("External", evacuationNodeName="node-1")) == Deny(
        f"Evacuation in progress: {TRIGGERED}", f"Evacuation in progress: {eviction.TRIGGERED}"
    )


def test_the_mark_of_a_former_node_is_replaced() -> None:
    assert decide(a_vmi("External", evacuationNodeName="node-0")) == Evacuate("node-1", TRIGGERED)


def test_a_vmi_that_no_node_has_yet_is_marked_with_the_node_of_its_pod() -> None:
    assert decide(a_vmi("External", phase=SCHEDULING, nodeName="")) == Evacuate("node-1", TRIGGERED)


def test_a_migration_target_is_not_evicted() -> None:
    decision = decide(a_vmi("LiveMigrate", migratable=True), node="node-2")

    assert isinstance(decision, Deny)
    assert decision.message.startswith("Eviction request for target Pod: VMI ns/web is migrating to it")


MOVED = {"migrationUid": "m", "startTimestamp": "2026-01-01T00:00:00Z", "sourcePodUID": "source", "targetPodUID": "t"}


@pytest.mark.parametrize(
    ("moving", "words"),
    [
        (MOVED | {"completed": True}, "VMI ns/web has left this Pod, which ends by itself"),
        (MOVED | {"completed": True, "failed": True}, "migrating"),
        (MOVED | {"completed": True, "sourcePodUID": "another"}, "migrating"),
    ],
    ids=["left", "stayed", "another Pod"],
)
def test_a_migration_source_after_the_migration(moving: dict[str, Any], words: str) -> None:
    decision = decide(a_vmi("LiveMigrate", migratable=True, nodeName="node-2", migrationState=moving))

    assert isinstance(decision, Deny)
    assert words in decision.message


def test_a_migrating_vmi_is_marked() -> None:
    """If the migration fails the mark starts the next one; if it succeeds the mark is removed."""
    moving = MOVED | {"sourceNode": "node-1", "targetNode": "node-2"}

    assert decide(a_vmi("LiveMigrate", migratable=True, migrationState=moving)) == Evacuate("node-1", TRIGGERED)


def test_an_unknown_strategy_denies() -> None:
    decision = decide(a_vmi("Teleport"))

    assert isinstance(decision, Deny)
    assert "'Teleport'" in decision.message
