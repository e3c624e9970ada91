# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every strategy, instance, queue and past: virt-api decides about a request, then the controller runs to rest.

An accepted request is carried out or visibly dropped, no state refuses start, stop and restart forever, and the advice
in a refusal is true and works.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.api.objects import conditions
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import Ownership, World
from tests.controlplane.virt_controller.builders import a_vm, a_vmi, vm_world
from tests.controlplane.virt_controller.vm.scenes import (
    INSTANCES,
    SCENES,
    STRATEGIES,
    VERBS,
    Played,
    Scene,
    answer_to,
    ask,
    rest_of,
    run_to_rest,
    the_scene,
)


def scenes_of(strategy: str) -> list[Scene]:
    return [scene for scene in SCENES if scene[0] == strategy]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_request_stays_queued_silently_and_one_is_accepted(strategy: str) -> None:
    """Requests left by a change of strategy, requests that bypassed virt-api, and nonsense are done, dropped or
    reported. At rest, start, stop or restart is accepted.
    """
    for scene in scenes_of(strategy):
        played = rest_of(scene)
        assert not played.world.vm.status.state_change_requests or played.is_reported, scene
        assert any(ask(verb, played.world) is not None for verb in VERBS), scene


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("verb", VERBS)
def test_an_accepted_request_takes_effect_or_is_visibly_dropped(verb: str, strategy: str) -> None:
    """Sent at once, and sent at rest. A former instance is no effect: a start of a machine whose instance is Unknown,
    or was created just now, is refused or creates another one.
    """
    for scene in scenes_of(strategy):
        for world in (the_scene(*scene), rest_of(scene).world):
            after = ask(verb, world)
            if after is None:
                continue
            played = run_to_rest(after)
            old = world.own.metadata.uid if world.own is not None else None
            match verb:
                case "start":
                    assert played.alive not in (None, old) or played.is_reported, scene
                case "start paused":
                    assert played.is_paused or played.is_reported, scene
                case "stop":
                    assert played.alive is None, scene
                    assert strategy not in BUILT or world.claim is Ownership.FOREIGN or is_stopped(played.world), scene
                case "restart":
                    assert played.alive not in (None, old), scene


def is_stopped(world: World) -> bool:
    """Tell whether the machine is reported as stopped, and no start of it waits."""
    status = world.vm.status
    is_waiting = status.state_change_requests or status.start_failure or conditions.find(status.conditions, "Failure")
    return status.printable_status == "Stopped" and not is_waiting


def test_requests_are_dropped_with_a_remedy() -> None:
    reasons = {because for scene in SCENES for because in rest_of(scene).dropped}
    assert reasons == {
        "a start with onTheMoon=yes is not implemented in this version",
        "run strategy is Halted; start the machine again, or change the strategy",
        "run strategy is Once; switch to Halted to stop the machine",
        "this version does not know such a request; it knows Start and Stop",
    }


# paused starts

PAUSED_SPEC = {"startStrategy": "Paused"}
START, STOP = {"action": "Start"}, {"action": "Stop", "uid": a_vmi().metadata.uid}


@pytest.mark.parametrize("strategy", BUILT)
def test_a_paused_start_starts_nothing_unpaused(strategy: str) -> None:
    for queue in ("paused start", "paused restart", "paused start of now", "paused restart of now"):
        played = rest_of((strategy, "none", queue, "acted on"))
        assert played.is_paused or (strategy == "Halted" and played.alive is None and played.dropped), queue


@pytest.mark.parametrize("queue", ["paused start", "paused restart", "paused start of before"])
@pytest.mark.parametrize("instance", INSTANCES)
def test_a_machine_that_was_halted_after_a_paused_start_stays_halted(instance: str, queue: str) -> None:
    played = rest_of(("Halted", instance, queue, "acted on"))
    assert (played.alive, played.world.vm.run_strategy) == (None, "Halted")


FAILED_PAUSED = a_vmi("Failed", spec=PAUSED_SPEC)


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
@pytest.mark.parametrize(
    ("vmi", "is_paused"),
    [(FAILED_PAUSED, True), (a_vmi("Failed", ran=True, spec=PAUSED_SPEC), False), (a_vmi("Failed"), False)],
    ids=["a paused start failed before the guest ran", "a paused start that ran", "an ordinary start"],
)
def test_the_run_after_a_failed_one_is_paused_until_the_request_is_completed(
    strategy: str, vmi: VirtualMachineInstance, is_paused: bool
) -> None:
    """However often it fails: each attempt belongs to the same request."""
    played = run_to_rest(vm_world(a_vm(strategy, runStrategy=strategy), vmi))
    assert played.alive is not None
    assert played.is_paused is is_paused
    assert played.world.vm.status.state_change_requests == ()


def test_a_later_unpaused_start_overrides_a_paused_one() -> None:
    played = run_to_rest(vm_world(a_vm("Always", stateChangeRequests=[STOP, START]), FAILED_PAUSED))
    assert played.alive is not None
    assert not played.is_paused


# the advice in a refusal

Remedy = Callable[[World], bool]


def do(world: World, *verbs: str) -> Played:
    """Send requests one after the other, each when the one before is done."""
    for verb in verbs:
        after = ask(verb, world)
        assert after is not None, f"{verb} is refused: {answer_to(verb, world)}"
        world = run_to_rest(after).world
    return run_to_rest(world)


def starts_now(world: World) -> bool:
    return is_new(do(world, "start"), world)


def starts_later(world: World) -> bool:
    """When the current work is done, a start is accepted, unless the machine has started by itself."""
    rest = run_to_rest(world)
    return rest.alive is not None or rest.is_reported or is_new(do(rest.world, "start"), world)


def starts_by_itself(world: World) -> bool:
    return is_new(run_to_rest(world), world)


def starts_after_stop(world: World) -> bool:
    return is_new(do(world, "stop", "start"), world)


def is_new(played: Played, world: World) -> bool:
    old = world.vmi.metadata.uid if world.vmi is not None else None
    return played.alive not in (None, old) or played.is_reported


def lives(*phases: str) -> Remedy:
    return lambda world: world.vmi is not None and world.vmi.status.phase in phases


def is_accepted(verb: str) -> Remedy:
    return lambda world: ask(verb, world) is not None


REMEDIES: dict[str, tuple[Remedy, ...]] = {
    r"VM is already running": (lives("Running"),),
    r"VM is already running or starting": (lives("", "Pending", "Scheduling", "Scheduled", "WaitingForSync"),),
    r"VM is not running": (lambda world: run_to_rest(world).alive is None,),
    r"(Halted does not support manual restart requests; )?VM is not running; start it": (starts_now,),
    r"VM is not running; it starts by itself; .*": (starts_by_itself,),
    r"the machine may still run .*; restart it to have it started again .*": (lives("Unknown"), is_accepted("restart")),
    r"the machine may still run .*; stop it, then start it .*": (lives("Unknown"), starts_after_stop),
    r"VM is already running, and stopping; start it when that is done.*": (starts_later,),
    r"Halted does not support manual restart requests; VM is stopping; start it .*": (starts_later,),
    r"Halted only supports manual stop requests with a shorter graceperiod.*; VM is stopping.*": (starts_later,),
    r"\w+ does not support manual (start|restart) requests; it starts by itself; .*": (starts_by_itself,),
    r"RerunOnFailure does not support starting VM from failed state; it starts .*": (starts_by_itself,),
    r"Once does not support manual (start|restart) requests.*; stop it, then start it .*": (starts_after_stop,),
    r"a stop of it is still being carried out; start it when that is done.*": (starts_later,),
    r"a (stop|start|restart|dance) of it is still being carried out; it starts by itself; .*": (starts_by_itself,),
    r"a start of it is still being carried out; stop takes it back.*": (is_accepted("stop"),),
    r"a dance of it is still being carried out; wait for it.*": (starts_later,),
}


@cache
def refusals() -> list[tuple[str, tuple[str, ...], World, str]]:
    collected = []
    for scene in SCENES:
        # Only RerunOnFailure depends on whether it was acted on.
        is_new = scene[3] == "fresh" and scene[0] != "RerunOnFailure"
        if scene[0] not in BUILT or is_new:
            continue
        for world in (the_scene(*scene), rest_of(scene).world):
            for verb in VERBS:
                answer = answer_to(verb, world)
                if isinstance(answer, str):
                    collected.append((verb, scene, world, answer))
    return collected


@pytest.mark.parametrize("strategy", BUILT)
def test_the_statements_of_a_refusal_hold_and_its_advice_works(strategy: str) -> None:
    for verb, scene, world, words in refusals():
        if scene[0] != strategy:
            continue
        rows = [row for text, row in REMEDIES.items() if re.fullmatch(text, words)]
        assert len(rows) == 1, (verb, scene, words)
        for holds in rows[0]:
            assert holds(world), (verb, scene, words)


def test_every_remedy_is_used() -> None:
    messages = {words for _verb, _scene, _world, words in refusals()}
    assert [text for text in REMEDIES if not any(re.fullmatch(text, words) for words in messages)] == []


def test_a_refusal_for_an_unknown_instance_names_the_proof() -> None:
    messages = [words for _verb, _scene, world, words in refusals() if lives("Unknown")(world)]
    assert messages
    assert all("not running" in words or "Its instance is Unknown: " in words for words in messages)
