# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every strategy, every state of the instance, every queue: a request that was accepted is carried out or visibly
dropped, and no state refuses start, stop and restart for ever. virt-api decides, then the controller runs to rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any, assert_never

import msgspec
import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import decode_vm, encode
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Tell
from controlplane.virt_api.lifecycle import (
    NotBuiltError,
    PatchInstance,
    RefusedError,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.options import RestartOptions, StartOptions, StopOptions
from controlplane.virt_controller.stamps import render_stamp
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.world import (
    Action,
    AddFinalizer,
    AdoptVmi,
    CreateVmi,
    DeleteVmi,
    DropRequest,
    ReleaseVmi,
    RemoveFinalizer,
    World,
)
from tests.controlplane.simulation.store import _merge
from tests.controlplane.virt_controller.builders import NOW, VMI_UID, a_vm, a_vmi, vm_world

START, STOP, STALE_STOP = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}, {"action": "Stop", "uid": "older"}
PAUSED = {"action": "Start", "data": {"paused": "true"}}

STRATEGIES = (*BUILT, "WaitAsReceiver")
INSTANCES: dict[str, VirtualMachineInstance | None] = {
    "none": None,
    **{phase or "fresh": a_vmi(phase) for phase in ("", "Pending", "Scheduling", "Scheduled", "WaitingForSync")},
    **{phase: a_vmi(phase, ran=True) for phase in ("Running", "Unknown", "Succeeded", "Failed")},
    "never ran": a_vmi("Failed"),
    "going": a_vmi("Running", ran=True, deleting=True),
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
            "retryAfterTimestamp": render_stamp(NOW + 80),
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
    """What came of a world when the controller, and everybody who acts on its writes, had run to rest."""

    world: World
    dropped: list[str] = field(default_factory=list)

    @property
    def alive(self) -> str | None:
        """UID of the machine's own live instance."""
        own = self.world.own
        return own.metadata.uid if own is not None and not is_final(own.status.phase) else None

    @property
    def is_told(self) -> bool:
        """A person can see why nothing happens."""
        return bool(self.dropped) or conditions.is_true(self.world.vm.status.conditions, "Failure")


def run_to_rest(world: World) -> Played:
    played = Played(world)
    for _unused in range(40):
        if not _turn(played):
            return played
    raise AssertionError(f"does not come to rest: {played.world}")


def _turn(played: Played) -> bool:
    """Let one step happen; tell whether there was one."""
    plan = decide(played.world)
    for step in (*plan.steps, Tell("the end of every plan")):
        if not isinstance(step, Tell):
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
    if plan.look_again_in is not None:
        _set(played, now=played.world.now + plan.look_again_in)
        return True
    return False


def _apply(played: Played, action: Action) -> None:
    vm, vmi = played.world.vm, played.world.vmi
    match action:
        case CreateVmi():
            assert vmi is None, "a second instance"
            fresh = a_vmi("Running", ran=True)
            _set(played, vmi=msgspec.structs.replace(fresh, metadata=_renamed(fresh, f"run {next(RUNS)}")))
        case DeleteVmi():
            assert played.world.own is not None, "not ours to delete"
            _set(played, vmi=None)
        case AdoptVmi():
            assert vmi is not None
            owned = msgspec.structs.replace(vmi.metadata, owner_references=a_vmi().metadata.owner_references)
            _set(played, vmi=msgspec.structs.replace(vmi, metadata=owned))
        case DropRequest():
            played.dropped.append(action.because)
            status = msgspec.structs.replace(vm.status, state_change_requests=action.left)
            _set(played, vm=msgspec.structs.replace(vm, status=status))
        case AddFinalizer() | RemoveFinalizer() | ReleaseVmi():
            raise AssertionError(f"nobody deletes this VM: {action}")
        case _:
            assert_never(action)


def _renamed(vmi: VirtualMachineInstance, uid: str) -> Any:
    return msgspec.structs.replace(vmi.metadata, uid=uid)


def _set(played: Played, **changes: Any) -> None:
    played.world = dataclasses.replace(played.world, **changes)


VERBS: dict[str, Callable[[VirtualMachine, VirtualMachineInstance | None], Any]] = {
    "start": lambda vm, vmi: decide_start(vm, vmi, StartOptions()),
    "stop": lambda vm, vmi: decide_stop(vm, vmi, StopOptions()),
    "restart": lambda vm, vmi: decide_restart(vm, vmi, RestartOptions()),
}


def ask(verb: str, world: World) -> World | None:
    """Do as virt-api does; None when it refuses."""
    try:
        writes = VERBS[verb](world.vm, world.vmi)
    except (RefusedError, NotBuiltError):
        return None
    plain = encode(world.vm)
    for write in writes:
        if not isinstance(write, PatchInstance):
            plain = _merge(plain, write.patch)
    return dataclasses.replace(world, vm=decode_vm(plain))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_request_waits_for_ever_untold(strategy: str) -> None:
    """What a change of strategy left behind, what got past virt-api, and nonsense: done, dropped, or told."""
    for scene in SCENES:
        if scene[0] == strategy:
            played = run_to_rest(the_scene(*scene))
            assert not played.world.vm.status.state_change_requests or played.is_told, scene


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_state_refuses_start_and_stop_and_restart_for_ever(strategy: str) -> None:
    for scene in SCENES:
        if scene[0] == strategy:
            world = run_to_rest(the_scene(*scene)).world
            assert any(ask(verb, world) is not None for verb in VERBS), scene


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("verb", VERBS)
def test_an_accepted_request_has_its_effect_or_is_visibly_dropped(verb: str, strategy: str) -> None:
    """Asked at once, and asked when all is at rest."""
    for scene in SCENES:
        if scene[0] != strategy:
            continue
        before = the_scene(*scene)
        for world in (before, run_to_rest(before).world):
            asked = ask(verb, world)
            if asked is None:
                continue
            played = run_to_rest(asked)
            old = world.own.metadata.uid if world.own is not None else None
            match verb:
                case "start":
                    assert played.alive is not None or played.is_told, scene
                case "stop":
                    assert played.alive is None, scene
                case "restart":
                    assert played.alive not in (None, old), scene


def test_what_is_dropped_is_dropped_for_a_reason_that_names_what_to_do() -> None:
    reasons = {because for scene in SCENES for because in run_to_rest(the_scene(*scene)).dropped}
    assert reasons == {
        "starting with paused=true is not built in this version",
        "run strategy is Halted; start the machine again, or change the strategy",
        "run strategy is Once and its one run is over",
        "run strategy is Once; switch to Halted to stop the machine",
        "no such request is known to this version; known are Start and Stop",
    }


def test_a_paused_start_starts_nothing_unpaused() -> None:
    """virt-api refuses it; a status patch gets around virt-api."""
    for strategy in ("Manual", "RerunOnFailure", "Halted"):
        for queue in ("paused start", "paused restart"):
            played = run_to_rest(the_scene(strategy, "none", queue, "acted on"))
            assert played.alive is None
            assert played.dropped


def test_merging_is_what_the_server_does() -> None:
    assert _merge({"a": {"b": 1, "c": 2}}, merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})) == {"a": {"b": 3}}
