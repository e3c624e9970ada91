# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions on the DataVolumes of a VM, and the VM's status by their states, as tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api import condition_types, printable_statuses

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import decode_vm, encode
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup
from controlplane.virt_controller.vm.data_volumes import build_data_volume
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VM_UID, VMI_UID, a_condition, a_vmi, vm_world
from tests.controlplane.virt_controller.data_volumes import OWN, SPEC, a_data_volume, a_vm_with_disk, looked_up
from tests.support.store import merged

HOLD = {"kubevirt.io/immediate-data-volume-creation": "false"}
STOP = {"stateChangeRequests": [{"action": "Stop", "uid": VMI_UID}]}
RUNNING = a_vmi("Running", ran=True)
NONE, NOT_SERVED, NOT_READ = looked_up(), DataVolumeLookup(), looked_up(is_complete=False)
FOREIGN = {**OWN, "uid": "somebody"}


def a_world(
    volumes: DataVolumeLookup, strategy: str = "Always", vmi: Any = None, annotations: Any = None, **more: Any
) -> World:
    return vm_world(a_vm_with_disk(strategy, annotations=annotations, **more), vmi, data_volumes=volumes)


def own(phase: str, **more: Any) -> DataVolumeLookup:
    return looked_up(a_data_volume(phase, OWN, **more))


STEPS: dict[str, tuple[World, list[str]]] = {
    "none: made first": (a_world(NONE), ["CreateDataVolume"]),
    "none, halted: made all the same": (a_world(NONE, "Halted"), ["CreateDataVolume"]),
    "none, halted, to be made when started: not now": (a_world(NONE, "Halted", annotations=HOLD), []),
    "none, to be made when started, and it is": (a_world(NONE, annotations=HOLD), ["CreateDataVolume"]),
    "none, to be made when started, and it runs unasked: made": (
        a_world(NONE, "Manual", RUNNING, HOLD),
        ["CreateDataVolume"],
    ),
    "none, and the VM runs: made": (a_world(NONE, vmi=RUNNING), ["CreateDataVolume"]),
    "none, and it is to stop: that comes first": (a_world(NONE, vmi=RUNNING, **STOP), ["DeleteVmi"]),
    "none is seen, but not all are: nothing": (a_world(NOT_READ), []),
    "the cluster has no CDI: nothing": (a_world(NOT_SERVED), []),
    "without a controller: adopted": (a_world(looked_up(a_data_volume("Succeeded"))), ["AdoptDataVolume"]),
    "without a controller and going: waited for": (a_world(looked_up(a_data_volume(deletionTimestamp="x"))), []),
    "foreign: nothing starts": (a_world(looked_up(a_data_volume("Succeeded", FOREIGN))), []),
    "being filled: nothing starts": (a_world(own("ImportInProgress")), []),
    "fresh: nothing starts": (a_world(own("")), []),
    "failed: nothing starts": (a_world(own("Failed")), []),
    "filled: it starts": (a_world(own("Succeeded")), ["CreateVmi"]),
    "waits for a consumer: it starts": (a_world(own("WaitForFirstConsumer")), ["CreateVmi"]),
    "to be populated for one: it starts": (a_world(own("PendingPopulation")), ["CreateVmi"]),
    "filled, halted: nothing": (a_world(own("Succeeded"), "Halted"), []),
    "being filled, and it runs already: nothing": (a_world(own("ImportInProgress"), vmi=RUNNING), []),
}


@pytest.mark.parametrize(("world", "steps"), STEPS.values(), ids=STEPS.keys())
def test_the_actions_for_each_state_of_the_data_volumes(world: World, steps: list[str]) -> None:
    assert [type(step).__name__ for step in decide(world).steps] == steps


ERROR = [a_condition("Running", "False", "Error", "no such host")]
UNPLACED = a_vmi("Scheduling", conditions=[a_condition("PodScheduled", "False", "Unschedulable")])
LOST = a_vmi("Scheduling", conditions=[a_condition("Synchronized", "False", "FailedPvcNotFound")])
PULLING = a_vmi("Scheduling", conditions=[a_condition("Synchronized", "False", "ErrImagePull")])
FILLING = own("ImportInProgress")
WFFC = own("WaitForFirstConsumer")
UNBOUND = {"is_volume_unbound": True}
BOUND = {"bound_claims": frozenset({"disk"})}

PREPARING, VOLUME_ERROR = printable_statuses.PROVISIONING, printable_statuses.DATA_VOLUME_ERROR
BINDING, STOPPED = printable_statuses.WAITING_FOR_VOLUME_BINDING, printable_statuses.STOPPED
SUCCEEDED = a_vmi("Succeeded", ran=True)
UNPOPULATED = own("PendingPopulation")

WORDS: dict[str, tuple[DataVolumeLookup, str, Any, dict[str, Any], str]] = {
    # DataVolumes, strategy, instance, facts, printable status; numbers: precedence in KubeVirt
    "6 before 7": (own("Failed"), "Always", LOST, {}, printable_statuses.PVC_NOT_FOUND),
    "7: failed": (own("Failed"), "Always", None, {}, VOLUME_ERROR),
    "7: an error": (own("Pending", conditions=ERROR), "Always", None, {}, VOLUME_ERROR),
    "7: halted": (own("Failed"), "Halted", None, {}, VOLUME_ERROR),
    "7 before 8": (own("Failed"), "Always", UNPLACED, {}, VOLUME_ERROR),
    "8 before 9": (FILLING, "Always", UNPLACED, {}, printable_statuses.UNSCHEDULABLE),
    "9: being filled": (FILLING, "Always", None, {}, PREPARING),
    "9: halted": (FILLING, "Halted", None, {}, PREPARING),
    "9 before 10": (FILLING, "Always", None, UNBOUND, PREPARING),
    "9: bound, about to be filled": (WFFC, "Always", None, BOUND, PREPARING),
    "9 before 11": (FILLING, "Always", PULLING, {}, PREPARING),
    "10: waits for a consumer": (WFFC, "Always", None, UNBOUND, BINDING),
    "10: not of a halted one": (WFFC, "Halted", None, UNBOUND, STOPPED),
    "10: with an instance": (WFFC, "Manual", a_vmi("Pending"), UNBOUND, BINDING),
    "10: not of a Once that is over": (WFFC, "Once", SUCCEEDED, UNBOUND, STOPPED),
    "10: between two runs": (WFFC, "Always", SUCCEEDED, UNBOUND, BINDING),
    "10 before 11": (own("Succeeded"), "Always", PULLING, UNBOUND, BINDING),
    "running": (own("Failed"), "Always", RUNNING, {}, printable_statuses.RUNNING),
    "none is seen": (NONE, "Halted", None, {}, STOPPED),
    "populated for a consumer, halted": (UNPOPULATED, "Halted", None, {}, STOPPED),
    "filled": (own("Succeeded"), "Halted", None, {}, STOPPED),
}


@pytest.mark.parametrize(("volumes", "strategy", "vmi", "facts", "word"), WORDS.values(), ids=WORDS.keys())
def test_the_printable_status_for_each_state_of_the_data_volumes(
    volumes: DataVolumeLookup, strategy: str, vmi: Any, facts: dict[str, Any], word: str
) -> None:
    status = derive_status(vm_world(a_vm_with_disk(strategy), vmi, data_volumes=volumes, **facts), None)

    assert status is not None
    assert status.printable_status == word


@pytest.mark.parametrize(
    ("volumes", "words"),
    [
        (NOT_SERVED, "does not serve DataVolumes (cdi.kubevirt.io/v1beta1); install CDI"),
        (looked_up(a_data_volume("Succeeded", FOREIGN)), "DataVolume disk exists and belongs to another object"),
        (NONE, None),
        (own("ImportInProgress"), None),
    ],
    ids=["no CDI", "foreign", "not made yet", "being filled"],
)
def test_a_permanent_obstacle_to_the_start_is_reported(volumes: DataVolumeLookup, words: str | None) -> None:
    status = derive_status(a_world(volumes), None)

    assert status is not None
    failure = conditions.find(status.conditions, condition_types.FAILURE)
    if words is None:
        assert failure is None
    else:
        assert failure is not None
        assert failure.reason == "FailedDataVolumeCreate"
        assert words in failure.message


def test_a_data_volume_is_created_from_its_template_and_bound_at_once() -> None:
    vm = a_vm_with_disk()

    assert build_data_volume(vm, vm.spec.data_volume_templates[0]) == {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "name": "disk",
            "namespace": "default",
            "labels": {"kubevirt.io/created-by": VM_UID},
            "annotations": {
                "cdi.kubevirt.io/storage.bind.immediate.requested": "true",
                "cdi.kubevirt.io/allowClaimAdoption": "true",
            },
            "ownerReferences": [{**OWN, "blockOwnerDeletion": True}],
        },
        "spec": SPEC,
    }


@pytest.mark.parametrize(
    ("own", "expected"), [({}, "urgent"), ({"priorityClassName": "calm"}, "calm")], ids=["none", "its own"]
)
def test_a_data_volume_has_the_priority_of_its_machine_unless_it_names_one(own: Any, expected: str) -> None:
    vm = a_vm_with_disk()
    vm = decode_vm(merged(encode(vm), {"spec": {"template": {"spec": {"priorityClassName": "urgent"}}}}))
    template = msgspec.structs.replace(vm.spec.data_volume_templates[0], spec={**SPEC, **own})

    assert build_data_volume(vm, template)["spec"] == {**SPEC, "priorityClassName": expected}
    assert "priorityClassName" not in SPEC
