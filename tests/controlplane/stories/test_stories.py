# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VM scenarios as text. To accept a change: UPDATE_GOLDEN=1 pytest tests/controlplane/stories, then read the diff."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.api.objects.resources import POD
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, set_taint
from tests.controlplane.simulation.node import BAD_NODE_SELECTOR
from tests.controlplane.stories.stage import Stage, Users, a_vm

GOLDEN = Path(__file__).parent.parent / "golden" / "stories"


def run_and_stop(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.switch("Halted")


def manual_restart_and_power_off(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Manual"))
    users.request("start", "Start")
    users.request("restart", "Stop", "Start")
    stage.guest("shut down")
    users.delete_vmi()


def rerun_on_failure(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="RerunOnFailure"))
    stage.guest("crashed")
    stage.guest("shut down")


def start_paused(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Halted"))
    users.start(is_paused=True)
    stage.wait(600)
    (guest,) = stage.guests()
    stage.act("a user unpauses vmi/web", lambda: guest.resume(by_user=True))
    users.switch("Halted")


def node_that_loses_power(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    ((key, _unused),) = stage.store.list(POD)
    stage.has_room = False
    stage.act("its node loses power", stage.lose_power)
    stage.act("somebody deletes the Pod by force", lambda: stage.store.delete(POD, key, grace_period_seconds=0))
    stage.wait(600)
    message = "a person says that the node is off: node.kubernetes.io/out-of-service"
    stage.act(message, lambda: set_taint(stage.store, stage.node.name, OUT_OF_SERVICE, on=True))
    stage.act("the node is back", stage.restore_power)
    stage.has_room = True
    stage.wait(0)


def launcher_that_fails(stage: Stage, users: Users) -> None:
    users.create(a_vm(nodeSelector={BAD_NODE_SELECTOR: "true"}))
    stage.wait(15)
    users.switch("Halted")


def launcher_image_that_comes_late(stage: Stage, users: Users) -> None:
    stage.node.broken = "lacks the launcher"
    users.create(a_vm())
    stage.node.broken = ""
    stage.wait(1)


def cascade_delete(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.delete_vm()


def orphan_and_adopt(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.delete_vm(orphan=True)
    users.create(a_vm())


def replicas_come_end_and_go(stage: Stage, users: Users) -> None:
    users.create_set(2)
    stage.act("a guest crashes", lambda: stage.guests()[0].end_guest("crashed"))
    users.scale(1)
    users.delete_set()


STORIES: tuple[Callable[[Stage, Users], None], ...] = (
    run_and_stop,
    manual_restart_and_power_off,
    rerun_on_failure,
    start_paused,
    node_that_loses_power,
    launcher_that_fails,
    launcher_image_that_comes_late,
    cascade_delete,
    orphan_and_adopt,
    replicas_come_end_and_go,
)


@pytest.mark.parametrize("story", STORIES, ids=[story.__name__ for story in STORIES])
def test_the_story_matches_its_golden_file(story: Callable[[Stage, Users], None]) -> None:
    with Stage() as stage:
        story(stage, Users(stage))
    golden = GOLDEN / f"{story.__name__}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(stage.text())
    assert stage.text() == golden.read_text()


def test_every_golden_file_has_a_story() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {story.__name__ for story in STORIES}
