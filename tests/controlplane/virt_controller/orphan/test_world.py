# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the orphan controller's World says: which migrations are asked for, and which Pods nobody else cleans up."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE
from msgspec.structs import replace

from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.orphan.world import World, referenced_migrations
from tests.controlplane.virt_controller.builders import POD_UID, a_running_pod
from tests.controlplane.virt_controller.migration.worlds import (
    BEGUN,
    FAILED_SENT,
    LEFT,
    OTHERS,
    TARGET_UID,
    UID,
    Json,
    a_migration,
    a_target,
    an_instance,
)

LABEL = {MIGRATION_TARGET_NODE: "node-2"}
SOURCE_PODS = (a_running_pod(),)


def labelled(pod: Pod, **labels: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, labels={**pod.metadata.labels, **labels}, resource_version="7"))


def instance(state: Json | None, labels: dict[str, str] | None = None) -> Any:
    vmi = an_instance(state, ran=True)
    return replace(vmi, metadata=replace(vmi.metadata, labels={**vmi.metadata.labels, **(labels or {})}))


@pytest.mark.parametrize(
    ("state", "labels", "pods", "uids"),
    [
        (None, {}, SOURCE_PODS, []),
        (BEGUN, {}, (), [UID]),
        (LEFT, {}, (), []),
        (LEFT, {}, SOURCE_PODS, [UID]),
        (LEFT, {}, (a_target(),), []),
        (LEFT, LABEL, (), [UID]),
        (FAILED_SENT, {}, (), []),
        (None, {}, (labelled(a_target(), **{MIGRATION_JOB: "job-1"}),), ["job-1"]),
        (None, {}, (labelled(a_target(), **{MIGRATION_JOB: ""}),), []),
    ],
    ids=[
        "no migration",
        "under way",
        "over, nothing remains",
        "over, its source Pod remains",
        "over, another Pod remains",
        "over, the label of its target node remains",
        "failed, nothing remains",
        "a Pod made for a migration",
        "an empty label",
    ],
)
def test_a_migration_with_remains_is_looked_up(
    state: Json | None, labels: dict[str, str], pods: tuple[Pod, ...], uids: list[str]
) -> None:
    assert [uid for uid, _version in referenced_migrations(instance(state, labels), pods)] == uids


@pytest.mark.parametrize(
    ("state", "gone", "pods", "is_down"),
    [
        (BEGUN, {UID}, (a_target("Failed"),), True),
        (BEGUN, {UID}, (a_target(),), False),
        (BEGUN, {UID}, (replace(a_running_pod(), status=a_target("Failed").status),), False),
        (BEGUN, set(), (a_target("Failed"),), False),
        (None, {UID}, (a_target("Failed"),), False),
    ],
    ids=["ended", "runs", "another Pod ended", "the migration exists", "no migration"],
)
def test_only_the_ended_target_pod_of_a_deleted_migration_is_down(
    state: Json | None, gone: set[str], pods: tuple[Pod, ...], is_down: bool
) -> None:
    world = World(vmi=instance(state), spare=pods, gone=frozenset(gone))
    assert world.is_target_down is is_down


@pytest.mark.parametrize(
    ("state", "gone", "remains"),
    [
        ({**OTHERS, "sourcePodUID": POD_UID}, set(), []),
        ({**OTHERS, "sourcePodUID": POD_UID}, {"another"}, [POD_UID]),
        ({**OTHERS, "sourcePodUID": TARGET_UID}, set(), [POD_UID]),
    ],
    ids=["its source", "its source, it is gone", "the source of another Pod's migration"],
)
def test_the_source_pod_of_an_existing_migration_is_not_a_remainder(
    state: Json, gone: set[str], remains: list[str]
) -> None:
    vmi = replace(instance(state), status=replace(instance(state).status, active_pods={TARGET_UID: "node-2"}))
    world = World(vmi=vmi, spare=SOURCE_PODS, gone=frozenset(gone))
    assert [pod.uid for pod in world.left] == remains


def test_a_finished_migration_without_a_state_names_no_source() -> None:
    vmi = replace(instance(None), status=replace(instance(None).status, active_pods={TARGET_UID: "node-2"}))
    other = {**LEFT, "sourcePodUID": "another"}
    for ended in (a_migration("Succeeded"), a_migration("Succeeded", migrationState=other)):
        assert [pod.uid for pod in World(vmi=vmi, spare=SOURCE_PODS, migrations=(ended,)).left] == [POD_UID]
