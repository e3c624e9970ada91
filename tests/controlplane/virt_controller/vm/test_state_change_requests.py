# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every strategy, instance state and queue: an accepted request is carried out or visibly dropped, and no state
refuses
start, stop and restart forever. virt-api decides, then the controller runs to rest.
"""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.engine.patch import merge_patch
from controlplane.virt_controller.vm.state_change_requests import (
    has_answered_start,
    has_stale_stop,
    needs_rerun_request,
    rerun_requests,
    why_drop,
)
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VMI_UID, a_vm, a_vmi, vm_world
from tests.controlplane.virt_controller.vm.play import (
    INSTANCES,
    PAUSED,
    PAUSED_BEFORE,
    PAUSED_OF_NOW,
    SCENES,
    STRATEGIES,
    VERBS,
    ask,
    merge,
    run_to_rest,
    the_scene,
)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_request_stays_queued_silently(strategy: str) -> None:
    """Requests left by a change of strategy, requests that bypassed virt-api, and nonsense are done, dropped or
    reported.
    """
    for scene in SCENES:
        if scene[0] == strategy:
            played = run_to_rest(the_scene(*scene))
            assert not played.world.vm.status.state_change_requests or played.is_told, scene


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_state_refuses_start_and_stop_and_restart_forever(strategy: str) -> None:
    for scene in SCENES:
        if scene[0] == strategy:
            world = run_to_rest(the_scene(*scene)).world
            assert any(ask(verb, world) is not None for verb in VERBS), scene


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("verb", VERBS)
def test_an_accepted_request_takes_effect_or_is_visibly_dropped(verb: str, strategy: str) -> None:
    """Sent at once, and sent at rest. A former instance is no effect: a start of a machine whose instance is Unknown,
    or was
    created just now, is refused or creates another one.
    """
    for scene in SCENES:
        if scene[0] != strategy:
            continue
        before = the_scene(*scene)
        for world in (before, run_to_rest(before).world):
            after = ask(verb, world)
            if after is None:
                continue
            played = run_to_rest(after)
            old = world.own.metadata.uid if world.own is not None else None
            match verb:
                case "start":
                    assert played.alive not in (None, old) or played.is_told, scene
                case "start paused":
                    assert played.is_paused or played.is_told, scene
                case "stop":
                    assert played.alive is None, scene
                case "restart":
                    assert played.alive not in (None, old), scene


def test_requests_are_dropped_with_a_remedy() -> None:
    reasons = {because for scene in SCENES for because in run_to_rest(the_scene(*scene)).dropped}
    assert reasons == {
        "starting with onTheMoon=yes is not built in this version",
        "run strategy is Halted; start the machine again, or change the strategy",
        "run strategy is Once; switch to Halted to stop the machine",
        "no such request is known to this version; known are Start and Stop",
    }


@pytest.mark.parametrize("strategy", BUILT)
def test_a_paused_start_starts_nothing_unpaused(strategy: str) -> None:
    for queue in ("paused start", "paused restart", "paused start of now", "paused restart of now"):
        played = run_to_rest(the_scene(strategy, "none", queue, "acted on"))
        assert played.is_paused or (strategy == "Halted" and played.alive is None and played.dropped), queue


@pytest.mark.parametrize("queue", ["paused start", "paused restart", "paused start of before"])
@pytest.mark.parametrize("instance", INSTANCES)
def test_a_machine_that_was_halted_after_a_paused_start_stays_halted(instance: str, queue: str) -> None:
    played = run_to_rest(the_scene("Halted", instance, queue, "acted on"))
    assert played.alive is None
    assert played.world.vm.run_strategy == "Halted"


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
def test_a_paused_start_that_failed_before_its_guest_ran_is_followed_by_a_paused_one(strategy: str) -> None:
    """However often: each attempt belongs to the same request."""
    vmi = a_vmi("Failed", spec=PAUSED_SPEC)
    played = run_to_rest(vm_world(a_vm(strategy, runStrategy=strategy), vmi))
    assert played.is_paused
    assert played.world.vm.status.state_change_requests == ()


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
@pytest.mark.parametrize("past", ["it ran", "nobody had asked for a pause"])
def test_the_run_after_a_completed_paused_start_is_not_paused(strategy: str, past: str) -> None:
    vmi = a_vmi("Failed", ran=True, spec=PAUSED_SPEC) if past == "it ran" else a_vmi("Failed")
    played = run_to_rest(vm_world(a_vm(strategy, runStrategy=strategy), vmi))
    assert played.alive is not None
    assert not played.is_paused


def test_a_later_unpaused_start_overrides_a_paused_one() -> None:
    vmi = a_vmi("Failed", spec=PAUSED_SPEC)
    played = run_to_rest(vm_world(a_vm("Always", stateChangeRequests=[STOP, START]), vmi))
    assert played.alive is not None
    assert not played.is_paused


def test_merging_matches_the_api_server() -> None:
    assert merge({"a": {"b": 1, "c": 2}}, merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})) == {"a": {"b": 3}}


PAUSED_SPEC = {"startStrategy": "Paused"}
START, STOP, STOP_ANY, STOP_OTHER = (
    {"action": "Start"},
    {"action": "Stop", "uid": VMI_UID},
    {"action": "Stop"},
    {"action": "Stop", "uid": "another"},
)


def asked(*queue: dict[str, Any], strategy: str = "Manual", vmi: Any = None) -> World:
    return vm_world(a_vm(strategy, stateChangeRequests=list(queue)), vmi)


@pytest.mark.parametrize(
    ("world", "is_stale"),
    [
        (asked(), False),
        (asked(STOP_ANY), True),
        (asked(STOP_OTHER), False),
        (asked(STOP_ANY, vmi=a_vmi("Running")), False),
        (asked(START, vmi=a_vmi("Running")), False),
        (asked(STOP_OTHER, STOP_ANY, vmi=a_vmi("Running")), False),
    ],
    ids=[
        "nothing",
        "whatever was there is stopped",
        "one that is named is stopped",
        "not done yet",
        "a start",
        "one done, one not",
    ],
)
def test_a_stop_without_a_uid_is_stale_once_it_is_done(world: World, is_stale: bool) -> None:
    assert has_stale_stop(world) is is_stale


@pytest.mark.parametrize(
    ("world", "is_answered"),
    [
        (asked(), False),
        (asked(START), False),
        (asked(START, vmi=a_vmi("Running")), True),
        (asked(STOP_OTHER), False),
        (asked(STOP_OTHER, START, vmi=a_vmi("Running")), True),
        (asked(STOP, START, vmi=a_vmi("Running")), False),
    ],
    ids=["nothing", "not yet", "its instance lives", "a stop alone", "started anew", "to be stopped first"],
)
def test_an_instance_answers_a_start(world: World, is_answered: bool) -> None:
    assert has_answered_start(world) is is_answered


@pytest.mark.parametrize(
    ("strategy", "phase", "queue", "is_asked"),
    [
        ("RerunOnFailure", "Failed", (), True),
        ("RerunOnFailure", "Succeeded", (), False),
        ("RerunOnFailure", "Running", (), False),
        ("RerunOnFailure", "Failed", (STOP,), False),
        ("Always", "Failed", (), False),
        ("Manual", "Failed", (), False),
    ],
)
def test_only_a_failed_run_under_rerun_on_failure_requests_another(
    strategy: str, phase: str, queue: tuple[dict[str, Any], ...], is_asked: bool
) -> None:
    own = a_vmi(phase)
    assert needs_rerun_request(asked(*queue, strategy=strategy, vmi=own), own) is is_asked


def test_a_deleting_instance_requests_none() -> None:
    own = a_vmi("Failed", deleting=True)
    assert not needs_rerun_request(asked(strategy="RerunOnFailure", vmi=own), own)


def test_another_run_is_a_stop_of_this_one_and_a_start() -> None:
    own = a_vmi("Failed")
    stop, start = rerun_requests(asked(vmi=own), own)
    assert (stop.action, stop.uid, start.action, start.uid) == ("Stop", VMI_UID, "Start", None)
    assert start.data == {}


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (asked(), None),
        (asked(START), None),
        (asked(STOP, vmi=a_vmi("Running")), None),
        (asked(START, strategy="Halted"), "run strategy is Halted"),
        (asked(STOP, strategy="Halted", vmi=a_vmi("Running")), None),
        (asked(STOP, strategy="Once", vmi=a_vmi("Running")), "run strategy is Once"),
        (asked(START, strategy="Once"), None),
        (asked({"action": "Start", "data": {"paused": "true"}}), None),
        (asked({"action": "Start", "data": {"paused": "perhaps"}}), "paused=perhaps is not built"),
        (asked(PAUSED, strategy="Halted"), "run strategy is Halted"),
        (asked(PAUSED_BEFORE, strategy="Halted"), "run strategy is Halted"),
        (asked(PAUSED_OF_NOW, strategy="Halted"), None),
        (asked({"action": "Start", "data": {"generation": "3"}}, strategy="Halted"), "run strategy is Halted"),
        (asked({"action": "Start", "data": {"paused": "False"}}), None),
        (asked({"action": "Dance"}), "no such request"),
    ],
)
def test_why_a_request_is_dropped(world: World, words: str | None) -> None:
    reason = why_drop(world)
    assert (reason is None) if words is None else (reason is not None and words in reason)
