# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every strategy, every state of the instance, every queue: a request that was accepted is carried out or visibly
dropped, and no state refuses start, stop and restart for ever. virt-api decides, then the controller runs to rest.
"""

from __future__ import annotations

import pytest

from controlplane.engine.patch import merge_patch
from tests.controlplane.virt_controller.vm.play import SCENES, STRATEGIES, VERBS, ask, merge, run_to_rest, the_scene


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
    """Asked at once, and asked when all is at rest. An instance that lived before is no effect: who asks for a start of
    a machine whose instance is Unknown, or was created just now, is refused or gets another.
    """
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
                    assert played.alive not in (None, old) or played.is_told, scene
                case "stop":
                    assert played.alive is None, scene
                case "restart":
                    assert played.alive not in (None, old), scene


def test_what_is_dropped_is_dropped_for_a_reason_that_names_what_to_do() -> None:
    reasons = {because for scene in SCENES for because in run_to_rest(the_scene(*scene)).dropped}
    assert reasons == {
        "starting with paused=true is not built in this version",
        "run strategy is Halted; start the machine again, or change the strategy",
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
    assert merge({"a": {"b": 1, "c": 2}}, merge_patch({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})) == {"a": {"b": 3}}
