# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launcher Pods may be evicted: every strategy, and what stands above it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.phase import FAILED, RUNNING, SUCCEEDED
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_api.admission import eviction_decision as eviction
from controlplane.virt_api.admission.eviction_decision import Allowed, Denied, Judgement, Marked, judge_eviction

TRIGGERED = 'Eviction triggered evacuation of VMI "ns/web"'
OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "controller": True}


def a_pod(*, uid: str = "u", node: str = "node-1", phase: str = "Running") -> Pod:
    owned = {
        "name": "virt-launcher-web-u-1",
        "namespace": "ns",
        "uid": "source",
        "ownerReferences": [OWNER | {"uid": uid}],
    }
    return decode({"metadata": owned, "spec": {"nodeName": node}, "status": {"phase": phase}}, Pod)


def a_vmi(strategy: str | None, *, migratable: bool | None = None, **status: Any) -> VirtualMachineInstance:
    said = {"type": "LiveMigratable", "status": str(migratable), "message": "its disk is its node's"}
    spec = {"domain": {"devices": {}}, **({"evictionStrategy": strategy} if strategy else {})}
    conditions = [] if migratable is None else [said]
    whole = {
        "metadata": {"name": "web", "namespace": "ns", "uid": "u"},
        "spec": spec,
        "status": {"phase": RUNNING, "nodeName": "node-1", "conditions": conditions, **status},
    }
    return decode_vmi(msgspec.json.encode(whole))


def judge(vmi: VirtualMachineInstance | None, usual: str | None = None, **pod: str) -> Judgement:
    return judge_eviction(a_pod(**pod), vmi, usual)


ROWS: dict[tuple[str | None, bool | None], Judgement | type[Denied]] = {
    (None, None): Allowed(),
    (None, True): Allowed(),
    ("None", False): Allowed(),
    ("None", True): Allowed(),
    ("LiveMigrate", None): Denied,
    ("LiveMigrate", False): Denied,
    ("LiveMigrate", True): Marked("node-1", TRIGGERED),
    ("LiveMigrateIfPossible", None): Allowed(),
    ("LiveMigrateIfPossible", False): Allowed(),
    ("LiveMigrateIfPossible", True): Marked("node-1", TRIGGERED),
    ("External", None): Marked("node-1", TRIGGERED),
    ("External", False): Marked("node-1", TRIGGERED),
    ("External", True): Marked("node-1", TRIGGERED),
}


@pytest.mark.parametrize(("strategy", "migratable"), ROWS, ids=str)
@pytest.mark.parametrize("is_usual", [False, True], ids=["its own", "the cluster's"])
def test_each_strategy_by_whether_it_can_move(strategy: str | None, migratable: bool | None, is_usual: bool) -> None:
    own, usual = (None, strategy) if is_usual else (strategy, None)
    judged = judge(a_vmi(own, migratable=migratable), usual)
    expected = ROWS[strategy, migratable]

    assert isinstance(judged, Denied) if expected is Denied else judged == expected


def test_its_own_word_counts_before_the_clusters() -> None:
    assert judge(a_vmi("None"), "LiveMigrate") == Allowed()
    assert isinstance(judge(a_vmi("LiveMigrate"), "None"), Denied)


def test_a_refusal_says_why_it_cannot_move_and_what_to_do() -> None:
    judged = judge(a_vmi("LiveMigrate", migratable=False))

    assert isinstance(judged, Denied)
    assert "VMI ns/web" in judged.why
    assert "its disk is its node's" in judged.why
    assert "stop it" in judged.why


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
def test_what_guards_no_guest_may_go(vmi: VirtualMachineInstance | None, pod: dict[str, str]) -> None:
    assert judge(vmi, **pod) == Allowed()


def test_an_instance_that_is_being_deleted_goes_anyway() -> None:
    going = a_vmi("LiveMigrate")
    meta = msgspec.structs.replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z")

    assert judge(msgspec.structs.replace(going, metadata=meta)) == Allowed()


def test_one_that_is_marked_already_is_under_way() -> None:
    assert judge(a_vmi("External", evacuationNodeName="node-1")) == Denied(
        f"Evacuation in progress: {TRIGGERED}", f"Evacuation in progress: {eviction.TRIGGERED}"
    )


def test_a_mark_of_a_node_that_it_has_left_counts_no_more() -> None:
    assert judge(a_vmi("External", evacuationNodeName="node-0")) == Marked("node-1", TRIGGERED)


def test_a_pod_that_it_moves_to_stays() -> None:
    judged = judge(a_vmi("LiveMigrate", migratable=True), node="node-2")

    assert isinstance(judged, Denied)
    assert judged.why.startswith("Eviction request for target Pod: VMI ns/web is on its way to it")


MOVED = {"migrationUid": "m", "startTimestamp": "2026-01-01T00:00:00Z", "sourcePodUID": "source", "targetPodUID": "t"}


@pytest.mark.parametrize(
    ("moving", "words"),
    [
        (MOVED | {"completed": True}, "VMI ns/web has left this Pod, which goes by itself"),
        (MOVED | {"completed": True, "failed": True}, "on its way"),
        (MOVED | {"completed": True, "sourcePodUID": "another"}, "on its way"),
    ],
    ids=["left", "stayed", "another Pod"],
)
def test_a_pod_that_it_has_left_is_called_that(moving: dict[str, Any], words: str) -> None:
    judged = judge(a_vmi("LiveMigrate", migratable=True, nodeName="node-2", migrationState=moving))

    assert isinstance(judged, Denied)
    assert words in judged.why


def test_the_node_that_it_is_leaving_is_marked_while_it_migrates() -> None:
    """Where that migration fails the mark is what brings the next one; where it does not, it is taken off with it."""
    moving = MOVED | {"sourceNode": "node-1", "targetNode": "node-2"}

    assert judge(a_vmi("LiveMigrate", migratable=True, migrationState=moving)) == Marked("node-1", TRIGGERED)


def test_a_strategy_of_another_version_gives_no_guest_up() -> None:
    judged = judge(a_vmi("Teleport"))

    assert isinstance(judged, Denied)
    assert "'Teleport'" in judged.why
