# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One requested start is one run, even if the leader changes or a user stops the machine during the creation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.resources import POD, Key
from controlplane.engine.errors import Unavailable
from controlplane.virt_api.subresources.lifecycle import PatchStatus, decide_stop
from controlplane.virt_api.subresources.options import StopOptions
from controlplane.virt_controller.vmi.world import pod_name
from tests.controlplane.virt_controller.vm.stage import CREATE, OLD_STOP, START, VM, VMI, WEB, Stage
from tests.support.store import Json

RAN = [{"phase": "Running", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
QUEUES = [("Manual", [START]), ("Manual", [OLD_STOP, START]), ("RerunOnFailure", [START])]


async def run_and_vanish(stage: Stage) -> None:
    """Let the leader write an instance and stop before it writes the status."""
    stage.direct.refusals["patch status of VirtualMachine"] = Unavailable("gone")
    await stage.run()
    stage.direct.refusals.clear()


def end(stage: Stage, phase: str) -> None:
    stage.patch_vmi({"phase": phase, "phaseTransitionTimestamps": RAN})


ENDS: dict[str, Callable[[Stage], object]] = {
    "it succeeded": lambda stage: end(stage, "Succeeded"),
    "a user deleted it": lambda stage: stage.store.delete(VMI, WEB),
}


@pytest.mark.parametrize("how", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("strategy", "requests"), QUEUES)
async def test_a_run_that_ended_before_its_start_left_the_queue_is_not_repeated(
    strategy: str, requests: list[Json], how: Callable[[Stage], object]
) -> None:
    stage = Stage(strategy, *requests)
    await run_and_vanish(stage)
    how(stage)
    stage.next_leader()
    await stage.come_to_rest()
    assert CREATE not in stage.calls
    assert stage.requests == []


async def test_an_instance_is_not_deleted_before_its_start_left_the_queue() -> None:
    """Otherwise a leader that stops right after the delete leaves a start behind that no instance answers."""
    stage = Stage("RerunOnFailure", START)
    await run_and_vanish(stage)
    end(stage, "Succeeded")
    stage.next_leader()
    stage.catch_up()
    await run_and_vanish(stage)
    assert not stage.is_vmi_deleting


async def test_a_failed_run_is_repeated_once() -> None:
    """The start is answered; under RerunOnFailure the failure requests one more."""
    stage = Stage("RerunOnFailure", START)
    await run_and_vanish(stage)
    first = stage.vmi["metadata"]["uid"]
    end(stage, "Failed")
    stage.next_leader()
    await stage.come_to_rest()
    assert stage.calls.count(CREATE) == 1
    assert stage.vmi["metadata"]["uid"] != first
    assert stage.requests == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"], ids=["the guest obeyed", "the guest was killed"])
@pytest.mark.parametrize("pod", ["deleted", "gone", "evicted by the kubelet"])
async def test_an_evicted_run_is_repeated_whether_or_not_its_guest_obeyed(phase: str, pod: str) -> None:
    """Nothing but the Pod shows the eviction yet."""
    stage = Stage("RerunOnFailure", START)
    await run_and_vanish(stage)
    first = stage.vmi["metadata"]["uid"]
    key = make_pod(stage, finalizers=["test/keep"] if pod == "deleted" else None)
    if pod == "evicted by the kubelet":
        target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        uid = stage.store.get(POD, key)["metadata"]["uid"]
        stage.store.set_pod(key, uid, status={"phase": "Failed", "reason": "Evicted", "conditions": [target]})
    else:
        stage.store.delete(POD, key)
    end(stage, phase)
    stage.next_leader()
    await stage.come_to_rest()
    assert stage.calls.count(CREATE) == 1
    assert stage.vmi["metadata"]["uid"] != first
    assert stage.requests == []


async def test_a_guest_that_shut_down_stays_off_though_its_pod_is_deleted_later() -> None:
    stage = Stage("RerunOnFailure", START)
    await run_and_vanish(stage)
    key = make_pod(stage)
    end(stage, "Succeeded")
    stage.next_leader()
    await stage.come_to_rest()
    stage.store.delete(POD, key)
    await stage.come_to_rest()
    assert stage.store.find(VMI, WEB) is None
    assert CREATE not in stage.calls


def make_pod(stage: Stage, finalizers: list[str] | None = None) -> Key:
    """Create the launcher Pod that has the guest."""
    key = Key("default", pod_name(decode_vmi(stage.vmi), 1))
    body = {"metadata": {"name": key.name, "finalizers": finalizers}, "spec": {}}
    uid = stage.store.create(POD, "default", body)["metadata"]["uid"]
    stage.patch_vmi({"activePods": {uid: "node-1"}})
    return key


def stop(stage: Stage) -> None:
    """Request a stop as virt-api does when it finds no instance."""
    assert stage.store.find(VMI, WEB) is None
    for write in decide_stop(decode_vm(stage.vm), None, StopOptions()):
        assert isinstance(write, PatchStatus)
        stage.store.patch(VM, WEB, write.patch, subresource="status")


@pytest.mark.parametrize(("strategy", "requests"), QUEUES)
@pytest.mark.parametrize("is_answer_lost", [False, True], ids=["answered", "answer lost, and a new leader"])
async def test_a_stop_during_the_creation_of_an_instance_is_carried_out(
    strategy: str, requests: list[Json], is_answer_lost: bool
) -> None:
    """Nobody has observed the instance when the stop is requested."""
    stage = Stage(strategy, *requests)
    stage.direct.meanwhile[CREATE] = lambda: stop(stage)
    await (run_and_vanish(stage) if is_answer_lost else stage.run())
    assert stage.store.find(VMI, WEB) is not None
    if is_answer_lost:
        stage.next_leader()
    await stage.come_to_rest()
    assert (stage.store.find(VMI, WEB), stage.requests) == (None, [])


@pytest.mark.parametrize(("strategy", "requests"), QUEUES)
async def test_a_stop_before_the_creation_is_removed_and_stops_no_later_run(
    strategy: str, requests: list[Json]
) -> None:
    stage = Stage(strategy, *requests)
    stop(stage)
    await stage.come_to_rest()
    assert (stage.store.find(VMI, WEB), stage.requests) == (None, [])
    assert CREATE not in stage.calls
    stage.queue(START)
    await stage.come_to_rest()
    assert stage.store.find(VMI, WEB) is not None
    assert not stage.is_vmi_deleting
