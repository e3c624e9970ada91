# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a replica set or pool."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import encode
from controlplane.engine.errors import Forbidden, Invalid, Throttled
from controlplane.engine.plan import RefusedStep, WriteStatus
from controlplane.virt_controller.members.status import derive_status, explain, status_of_batch
from controlplane.virt_controller.members.world import AdoptMember, BeginBatch, CreateMember, DeleteMember
from controlplane.virt_controller.pool.world import World as PoolWorld
from controlplane.virt_controller.replicaset.world import World as ReplicaSetWorld
from tests.controlplane.virt_controller.builders import STAMP
from tests.controlplane.virt_controller.members.stand import READY
from tests.controlplane.virt_controller.pool import stage as pools
from tests.controlplane.virt_controller.replicaset.stage import POD_GOES, a_member, a_set, a_world

SELECTOR = {"labelSelector": "app=web"}
A, B = a_member("a", ready=READY), a_member("b")
PAUSED = {"type": "ReplicaPaused", "status": "True", "reason": "Paused", "message": "Controller got paused"}


def status_of(*args: Any, problem: Any = None, **parts: Any) -> dict[str, Any] | None:
    status = derive_status(a_world(*args, **parts), problem)
    return None if status is None else encode(status)


def test_active_and_ready_members_are_counted() -> None:
    gone = (
        a_member("over", "Failed"),
        a_member("going", deleting=True, ready=READY),
        a_member("drained", ready=POD_GOES),
    )
    assert status_of(a_set(5), A, B, *gone) == {**SELECTOR, "replicas": 2, "readyReplicas": 1}


def test_an_up_to_date_status_is_not_written() -> None:
    first = derive_status(a_world(a_set(2), A, B), None)
    assert first is not None
    assert status_of(a_set(2, **encode(first)), A, B) is None


def test_the_selector_is_in_the_status_as_text() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["b", "a"]}
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [expression]}
    status = status_of(a_set(selector=selector))
    assert status == {"labelSelector": "app=web,zone in (a,b)"}


def test_the_condition_of_a_pause_is_set_and_removed() -> None:
    paused = {**PAUSED, "lastTransitionTime": STAMP}
    assert status_of(a_set(paused=True)) == {**SELECTOR, "conditions": [paused]}
    assert status_of(a_set(conditions=[paused], **SELECTOR)) == SELECTOR
    (of_pool,) = encode(derive_status(pools.a_world(pools.a_pool(paused=True)), None))["conditions"]
    assert (of_pool["reason"], of_pool["message"]) == ("SuccessfulPaused", "Pool controller is paused")


@pytest.mark.parametrize(
    ("step", "error", "of_set", "of_pool", "words"),
    [
        (
            CreateMember("x", "y"),
            Forbidden("quota"),
            "FailedCreate",
            "FailedScaleOut",
            "quota; check",
        ),
        (CreateMember("x", "y"), Invalid("bad"), "FailedCreate", "FailedScaleOut", "bad; correct spec.template"),
        (
            BeginBatch(1, "y"),
            Throttled("later"),
            "FailedCreate",
            "FailedScaleOut",
            "later; virt-controller retries it",
        ),
        (DeleteMember(A, "y"), Forbidden("no"), "FailedDelete", "FailedScaleIn", "no; check"),
        (DeleteMember(A, "y", is_update=True), Forbidden("no"), "FailedUpdate", "FailedUpdate", "no; check"),
        (AdoptMember(A, "y"), Forbidden("no"), "FailedUpdate", "FailedUpdate", "no; check"),
        (WriteStatus("y"), Invalid("no"), "FailedUpdate", "FailedUpdate", "no; compare the installed CRDs"),
    ],
    ids=["quota", "invalid", "batch", "delete", "replace", "adopt", "status"],
)
def test_a_refusal_sets_a_condition_that_a_success_removes(
    step: Any, error: Any, of_set: str, of_pool: str, words: str
) -> None:
    status = status_of(a_set(), problem=RefusedStep(step, error))
    assert status is not None
    (failure,) = status["conditions"]
    assert (failure["type"], failure["status"], failure["reason"]) == ("ReplicaFailure", "True", of_set)
    assert failure["message"].startswith(words)
    assert status_of(a_set(conditions=[failure], **SELECTOR)) == SELECTOR
    assert explain(ReplicaSetWorld.reasons, RefusedStep(step, error)) == (of_set, failure["message"])
    assert explain(PoolWorld.reasons, RefusedStep(step, error)) == (of_pool, failure["message"])


def test_only_a_member_that_is_invalid_is_blamed_on_the_template() -> None:
    create, delete = (
        RefusedStep(CreateMember("x", "y"), Invalid("bad")),
        RefusedStep(DeleteMember(A, "y"), Invalid("bad")),
    )
    assert explain(ReplicaSetWorld.reasons, create)[1] == "bad; correct spec.template"
    assert "spec.template" not in explain(ReplicaSetWorld.reasons, delete)[1]


def test_an_invalid_selector_is_a_failure() -> None:
    status = status_of(a_set(), problems=("spec.selector: is empty",))
    assert status is not None
    assert status["conditions"][0]["message"] == "spec.selector: is empty"


def test_a_batch_has_the_next_number() -> None:
    status = status_of_batch(a_world(a_set(5, batches=6), A), BeginBatch(4, "y"))
    assert encode(status) == {**SELECTOR, "replicas": 1, "readyReplicas": 1, "batches": 7, "batchSize": 4}
    of_pool = status_of_batch(pools.a_world(pools.a_pool()), BeginBatch((0, 2), "y"))
    assert (of_pool.batches, of_pool.begun) == (1, (0, 2))


def test_a_batch_is_open_until_all_of_its_names_exist() -> None:
    half = a_set(batches=7, batchSize=4, **SELECTOR)
    assert status_of(half, unmade=("x",)) is None
    assert status_of(half) == {**SELECTOR, "batches": 7}


def test_the_condition_of_a_back_off_is_set_and_removed() -> None:
    status = status_of(a_set(2), A, held_back=1, held_for=10.0)
    assert status is not None
    (condition,) = status["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "ended before they ran" in condition["message"]
    assert "conditions" not in (status_of(a_set(2, **status), A) or {"conditions": status})
