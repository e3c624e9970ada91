# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine in any state: virt-api's answers, and the result after the controller has come to rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import count, product
from typing import Any, assert_never

import msgspec
from kubevirt_api.run_strategies import BUILT

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import decode_vm, encode
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import WriteStatus
from controlplane.virt_api.subresources.lifecycle import (
    NotImplementedStrategyError,
    PatchInstance,
    PatchSpec,
    RefusedError,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.subresources.options import RestartOptions, StartOptions, StopOptions
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.vmi_manifest import run_always_patch
from controlplane.virt_controller.vm.world import (
    Action,
    AddFinalizer,
    AdoptDataVolume,
    AdoptVmi,
    ConfirmPod,
    CreateDataVolume,
    CreateVmi,
    DeleteVmi,
    DropRequest,
    ReleaseVmi,
    RemoveFinalizer,
    SetRunStrategyAlways,
    World,
)
from tests.controlplane.virt_controller.builders import NOW, VMI_UID, a_vm, a_vmi, vm_world
from tests.support.store import merged as merge

START, STOP, STALE_STOP = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}, {"action": "Stop", "uid": "older"}
PAUSED = {"action": "Start", "data": {"paused": "true"}}
PAUSED_OF_NOW = {"action": "Start", "data": {"paused": "true", "generation": "3"}}
PAUSED_BEFORE = {"action": "Start", "data": {"paused": "true", "generation": "2"}}
ODD = {"action": "Start", "data": {"onTheMoon": "yes"}}

STRATEGIES = (*BUILT, "WaitAsReceiver")
INSTANCES: dict[str, VirtualMachineInstance | None] = {
    "none": None,
    **{phase or "fresh": a_vmi(phase) for phase in ("", "Scheduling", "WaitingForSync")},
    **{phase: a_vmi(phase, ran=True) for phase in ("Running", "Unknown", "Succeeded", "Failed")},
    "never ran": a_vmi("Failed"),
    "going": a_vmi("Running", ran=True, deleting=True),
    "fresh and going": a_vmi(deleting=True),
    "over and going": a_vmi("Failed", ran=True, deleting=True),
    "orphan": a_vmi("Running", ran=True, owner=None),
    "orphan, over": a_vmi("Succeeded", ran=True, owner=None),
    "foreign": a_vmi("Running", ran=True, owner="somebody"),
    "foreign, over": a_vmi("Failed", owner="somebody"),
}
QUEUES: dict[str, list[dict[str, Any]]] = {
    "nothing": [],
    "start": [START],
    "stop": [STOP],
    "restart": [STOP, START],
    "stale restart": [STALE_STOP, START],
    "start, then stop": [START, STOP],
    "any stop": [{"action": "Stop"}],
    "paused start": [PAUSED],
    "paused restart": [STOP, PAUSED],
    "paused start of now": [PAUSED_OF_NOW],
    "paused restart of now": [STOP, PAUSED_OF_NOW],
    "paused start of before": [PAUSED_BEFORE],
    "odd start": [ODD],
    "nonsense": [{"action": "Dance"}, START],
}
PASTS: dict[str, dict[str, Any]] = {
    "fresh": {},
    "acted on": {"runStrategy": "same"},
    "crashing": {
        "runStrategy": "same",
        "startFailure": {
            "consecutiveFailCount": 4,
            "lastFailedVMIUID": "older",
            "retryAfterTimestamp": format_timestamp(NOW + 80),
        },
    },
}
RUNS = count(1)
Scene = tuple[str, str, str, str]
SCENES: list[Scene] = list(product(STRATEGIES, INSTANCES, QUEUES, PASTS))


def the_scene(strategy: str, instance: str, queue: str, past: str) -> World:
    status = {**PASTS[past], "stateChangeRequests": QUEUES[queue]}
    if status.get("runStrategy"):
        status["runStrategy"] = strategy
    return vm_world(a_vm(strategy, **status), INSTANCES[instance])


@dataclass
class Played:
    """The result after the controller, and everybody who acts on its writes, have come to rest."""

    world: World
    dropped: list[str] = field(default_factory=list)

    @property
    def alive(self) -> str | None:
        """UID of the machine's own live instance."""
        own = self.world.own
        return own.metadata.uid if own is not None and not is_final(own.status.phase) else None

    @property
    def is_paused(self) -> bool:
        """The machine's own live instance waits for an unpause."""
        return self.alive is not None and self.world.own is not None and self.world.own.spec.is_start_paused

    @property
    def is_reported(self) -> bool:
        """The status shows a user why nothing happens."""
        return bool(self.dropped) or conditions.is_true(self.world.vm.status.conditions, "Failure")


@cache
def rest_of(scene: Scene) -> Played:
    """Return the result of a scene, for reading only."""
    return run_to_rest(the_scene(*scene))


def run_to_rest(world: World) -> Played:
    played = Played(world)
    for _unused in range(40):
        if not _turn(played):
            return played
    raise AssertionError(f"does not come to rest: {played.world}")


def _turn(played: Played) -> bool:
    """Let one step happen; return whether there was one."""
    plan = decide(played.world)
    for step in (*plan.steps, WriteStatus("the end of every plan")):
        if not isinstance(step, WriteStatus):
            _apply(played, step)
            return True
        status = derive_status(played.world, None)
        if status is not None:
            _set(played, vm=msgspec.structs.replace(played.world.vm, status=status))
            return True
    vmi = played.world.vmi
    if vmi is not None and vmi.metadata.deletion_timestamp is not None:
        _set(played, vmi=None)  # the node and the VMI controller have done their part
        return True
    if plan.requeue_after is not None:
        _set(played, now=played.world.now + plan.requeue_after)
        return True
    return False


def _apply(played: Played, action: Action) -> None:
    vm, vmi = played.world.vm, played.world.vmi
    match action:
        case CreateVmi():
            assert vmi is None, "a second instance"
            paused = {"startStrategy": "Paused"} if action.is_paused else {}
            fresh = a_vmi("Running", ran=True, spec=paused)
            fresh = msgspec.structs.replace(fresh, metadata=_renamed(fresh, f"run {next(RUNS)}"))
            _set(played, vmi=fresh, is_pod_evicted=None)
        case DeleteVmi():
            assert played.world.own is not None, "not ours to delete"
            _set(played, vmi=None)
        case ConfirmPod():
            _set(played, is_pod_evicted=False)  # each guest that has ended here chose to
        case AdoptVmi():
            assert vmi is not None
            owned = msgspec.structs.replace(vmi.metadata, owner_references=a_vmi().metadata.owner_references)
            _set(played, vmi=msgspec.structs.replace(vmi, metadata=owned))
        case SetRunStrategyAlways():
            meta = msgspec.structs.replace(vm.metadata, generation=vm.metadata.generation + 1)
            plain = merge(encode(vm), {"spec": run_always_patch(vm)})
            _set(played, vm=msgspec.structs.replace(decode_vm(plain), metadata=meta))
        case DropRequest():
            played.dropped.append(action.because)
            status = msgspec.structs.replace(vm.status, state_change_requests=action.left)
            _set(played, vm=msgspec.structs.replace(vm, status=status))
        case AddFinalizer() | RemoveFinalizer() | ReleaseVmi() | CreateDataVolume() | AdoptDataVolume():
            raise AssertionError(f"nobody deletes this VM, and it has no templates of DataVolumes: {action}")
        case _:
            assert_never(action)


def _renamed(vmi: VirtualMachineInstance, uid: str) -> Any:
    return msgspec.structs.replace(vmi.metadata, uid=uid)


def _set(played: Played, **changes: Any) -> None:
    played.world = dataclasses.replace(played.world, **changes)


VERBS: dict[str, Callable[[VirtualMachine, VirtualMachineInstance | None], Any]] = {
    "start": lambda vm, vmi: decide_start(vm, vmi, StartOptions()),
    "start paused": lambda vm, vmi: decide_start(vm, vmi, StartOptions(paused=True)),
    "stop": lambda vm, vmi: decide_stop(vm, vmi, StopOptions()),
    "restart": lambda vm, vmi: decide_restart(vm, vmi, RestartOptions()),
}


def ask(verb: str, world: World) -> World | None:
    """Send a request as virt-api does; None when it refuses."""
    answer = answer_to(verb, world)
    return None if isinstance(answer, str) else answer


def answer_to(verb: str, world: World) -> World | str:
    """Answer as virt-api does: the world after the writes, or the message of the refusal."""
    try:
        writes = VERBS[verb](world.vm, world.vmi)
    except (RefusedError, NotImplementedStrategyError) as error:
        return str(error)
    plain = encode(world.vm)
    for write in writes:
        if not isinstance(write, PatchInstance):
            plain = merge(plain, write.patch)
        if isinstance(write, PatchSpec):
            plain["metadata"]["generation"] += 1
    return dataclasses.replace(world, vm=decode_vm(plain))
