# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The advice in a refusal of start, stop or restart is true and works, in every state with such a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.vm.play import SCENES, VERBS, Played, answer_to, ask, run_to_rest, the_scene

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
    return rest.alive is not None or rest.is_told or is_new(do(rest.world, "start"), world)


def starts_by_itself(world: World) -> bool:
    return is_new(run_to_rest(world), world)


def starts_anew(world: World) -> bool:
    return is_new(do(world, "stop", "start"), world)


def is_new(played: Played, world: World) -> bool:
    old = world.vmi.metadata.uid if world.vmi is not None else None
    return played.alive not in (None, old) or played.is_told


def lives(*phases: str) -> Remedy:
    return lambda world: world.vmi is not None and world.vmi.status.phase in phases


def is_taken(verb: str) -> Remedy:
    return lambda world: ask(verb, world) is not None


REMEDIES: dict[str, tuple[Remedy, ...]] = {
    r"VM is already running": (lives("Running"),),
    r"VM is already running or starting": (lives("", "Pending", "Scheduling", "Scheduled", "WaitingForSync"),),
    r"VM is not running": (lambda world: run_to_rest(world).alive is None,),
    r"(Halted does not support manual restart requests; )?VM is not running; start it": (starts_now,),
    r"VM is not running; it starts by itself; .*": (starts_by_itself,),
    r"the machine may still run .*; restart it to have it started again .*": (lives("Unknown"), is_taken("restart")),
    r"the machine may still run .*; stop it, then start it .*": (lives("Unknown"), starts_anew),
    r"VM is already running, and stopping; start it when that is done.*": (starts_later,),
    r"Halted does not support manual restart requests; VM is stopping; start it .*": (starts_later,),
    r"Halted only supports manual stop requests with a shorter graceperiod.*; VM is stopping.*": (starts_later,),
    r"\w+ does not support manual (start|restart) requests; it starts by itself; .*": (starts_by_itself,),
    r"RerunOnFailure does not support starting VM from failed state; it starts .*": (starts_by_itself,),
    r"Once does not support manual (start|restart) requests.*; stop it, then start it .*": (starts_anew,),
    r"a stop of it is still being carried out; start it when that is done.*": (starts_later,),
    r"a (stop|start|restart|dance) of it is still being carried out; it starts by itself; .*": (starts_by_itself,),
    r"a start of it is still being carried out; stop takes it back.*": (is_taken("stop"),),
    r"a dance of it is still being carried out; wait for it.*": (starts_later,),
}


def refusals() -> list[tuple[str, tuple[str, ...], World, str]]:
    collected = []
    for scene in SCENES:
        if scene[0] not in BUILT:
            continue
        before = the_scene(*scene)
        for world in (before, run_to_rest(before).world):
            for verb in VERBS:
                answer = answer_to(verb, world)
                if isinstance(answer, str):
                    collected.append((verb, scene, world, answer))
    return collected


REFUSALS = refusals()


@pytest.mark.parametrize("strategy", BUILT)
def test_the_statements_of_a_refusal_hold_and_its_advice_works(strategy: str) -> None:
    for verb, scene, world, words in REFUSALS:
        if scene[0] != strategy:
            continue
        rows = [row for text, row in REMEDIES.items() if re.fullmatch(text, words)]
        assert len(rows) == 1, (verb, scene, words)
        for holds in rows[0]:
            assert holds(world), (verb, scene, words)


def test_every_remedy_is_used() -> None:
    messages = {words for _verb, _scene, _world, words in REFUSALS}
    assert [text for text in REMEDIES if not any(re.fullmatch(text, words) for words in messages)] == []


def test_a_refusal_for_an_unknown_instance_names_the_proof() -> None:
    messages = [words for _verb, _scene, world, words in REFUSALS if lives("Unknown")(world)]
    assert messages
    assert all("not running" in words or "Its instance is Unknown: " in words for words in messages)
