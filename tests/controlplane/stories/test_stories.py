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


def guest_powers_off_under_always(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    stage.guest("shut down")


def instance_deleted_under_always(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.delete_vmi()


def manual_start_stop_and_power_off(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Manual"))
    users.request("start", "Start")
    users.request("restart", "Stop", "Start")
    users.request("stop", "Stop")
    users.request("start", "Start")
    stage.guest("shut down")
    users.delete_vmi()


def rerun_on_failure(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="RerunOnFailure"))
    stage.guest("crashed")
    stage.guest("shut down")


def once(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Once"))
    stage.guest("crashed")
    stage.wait(600)
    users.switch("Halted")


def halted_start(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Halted"))
    users.start()
    stage.guest("shut down")
    users.switch("Halted")


def start_paused(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Halted"))
    users.start(is_paused=True)
    stage.wait(600)
    (guest,) = stage.guests()
    stage.act("a user unpauses vmi/web", lambda: guest.resume(by_person=True))
    stage.guest("shut down")
    users.switch("Halted")


def paused_and_let_go_on(stage: Stage, users: Users) -> None:
    users.create(a_vm(strategy="Manual"))
    users.request("start", "Start")
    (guest,) = stage.guests()
    stage.act("a user pauses vmi/web", guest.pause)
    stage.wait(600)
    stage.act("a user unpauses vmi/web", lambda: guest.resume(by_person=True))
    users.request("stop", "Stop")


def node_that_loses_power(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    ((key, _unused),) = stage.store.list(POD)
    stage.has_room = False
    stage.act("its node loses power", stage.lose_power)
    stage.act("somebody deletes the Pod by force", lambda: stage.store.delete(POD, key, grace_period_seconds=0))
    stage.wait(600)
    message = "a person says that the node is off: node.kubernetes.io/out-of-service"
    stage.act(message, lambda: set_taint(stage.store, stage.node.name, OUT_OF_SERVICE, on=True))
    stage.act("the node is back", stage.have_power)
    stage.has_room = True
    stage.wait(0)


def launcher_that_fails(stage: Stage, users: Users) -> None:
    users.create(a_vm(nodeSelector={BAD_NODE_SELECTOR: "true"}))
    stage.wait(15)
    stage.wait(60)
    users.switch("Halted")


def node_that_refuses(stage: Stage, users: Users) -> None:
    stage.node.broken = "refuses"
    users.create(a_vm())
    stage.node.broken = ""
    stage.wait(10)


def launcher_image_that_comes_late(stage: Stage, users: Users) -> None:
    stage.node.broken = "lacks the launcher"
    users.create(a_vm())
    stage.node.broken = ""
    stage.wait(1)


def restart_of_a_pending_vm(stage: Stage, users: Users) -> None:
    stage.has_room = False
    users.create(a_vm())
    users.request("restart", "Stop", "Start")
    stage.has_room = True
    stage.wait(0)


def request_left_behind_by_a_switch(stage: Stage, users: Users) -> None:
    users.create(a_vm("db", "Halted"))
    users.create_vmi()
    users.create(a_vm(strategy="Manual"))
    users.request("start", "Start")
    users.switch("Halted")
    users.let_go_of_vmi()
    users.switch("Always")


def cascade_delete(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.delete_vm()


def orphan_and_adopt(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    users.delete_vm(orphan=True)
    users.create(a_vm())


def pod_deleted_under_a_running_guest(stage: Stage, users: Users) -> None:
    users.create(a_vm())
    ((key, _unused),) = stage.store.list(POD)
    stage.act("a node is drained: the Pod is deleted", lambda: stage.store.delete(POD, key))


def replicas_come_end_and_go(stage: Stage, users: Users) -> None:
    users.create_set(2)
    stage.act("a guest crashes", lambda: stage.guests()[0].end_guest("crashed"))
    users.scale(1)
    users.delete_set()


STORIES: tuple[Callable[[Stage, Users], None], ...] = (
    run_and_stop,
    guest_powers_off_under_always,
    instance_deleted_under_always,
    manual_start_stop_and_power_off,
    rerun_on_failure,
    once,
    halted_start,
    start_paused,
    paused_and_let_go_on,
    node_that_loses_power,
    launcher_that_fails,
    node_that_refuses,
    launcher_image_that_comes_late,
    restart_of_a_pending_vm,
    request_left_behind_by_a_switch,
    cascade_delete,
    orphan_and_adopt,
    pod_deleted_under_a_running_guest,
    replicas_come_end_and_go,
)


@pytest.mark.parametrize("story", STORIES, ids=[item.__name__ for item in STORIES])
def test_the_story_matches_its_golden_file(story: Callable[[Stage, Users], None]) -> None:
    with Stage() as stage:
        story(stage, Users(stage))
    golden = GOLDEN / f"{story.__name__}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(stage.text())
    assert stage.text() == golden.read_text()


def test_every_golden_file_has_a_story() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {story.__name__ for story in STORIES}
