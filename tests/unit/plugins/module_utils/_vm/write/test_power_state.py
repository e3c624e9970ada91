# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guests of VMs: pause, unpause, reset, reboot, paused start; and requests that a control plane does not
support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut, VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_guests
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
INSTANCE = ("virtualmachineinstances", "default", "web")


def conditions(world: World) -> set[str]:
    return {item["type"] for item in world.objects[INSTANCE]["status"]["conditions"] if item["status"] == "True"}


def test_a_vm_is_paused_and_unpaused_through_its_instance(world: World, task: Task) -> None:
    task(**MACHINE)
    paused = task(state="paused", wait=True)
    assert (paused["changed"], paused["method"], paused["result"]["kind"]) == (True, "pause", "VirtualMachine")
    assert conditions(world) == {"Paused"}
    assert task(state="paused", wait=True)["changed"] is False
    assert task(state="unpaused", wait=True)["method"] == "unpause"
    assert conditions(world) == {"Ready"}


def test_declared_changes_are_made_too(world: World, task: Task) -> None:
    task(**MACHINE)
    assert task(state="paused", memory="2Gi")["method"] == "pause"
    assert world.vm("web")["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"}


@pytest.mark.parametrize("state", ["reset", "softrebooted"])
def test_resets_and_reboots_happen_each_time(world: World, task: Task, state: str) -> None:
    task(**MACHINE)
    uid = world.objects[INSTANCE]["metadata"]["uid"]
    assert [task(state=state, wait=True)["changed"] for _unused in range(2)] == [True, True]
    assert world.objects[INSTANCE]["metadata"]["uid"] == uid


def test_only_a_running_guest_is_operated(world: World, task: Task) -> None:
    with pytest.raises(BadArgument, match="web cannot be reset: there is no such machine in namespace default; look"):
        task(state="reset", **MACHINE)
    assert world.objects == {}
    task(running=False, **MACHINE)
    with pytest.raises(VirtError, match="VirtualMachine default/web cannot be paused: it does not run; start it first"):
        task(state="paused")


@pytest.mark.parametrize("strategy", ["Always", "Halted", "Manual"])
def test_a_start_that_leaves_the_guest_paused(world: World, task: Task, strategy: str) -> None:
    result = task(state="started", start_paused=True, run_strategy=strategy, wait=True, **MACHINE)
    assert (result["changed"], result["method"], conditions(world)) == (True, "start", {"Paused"})
    again = task(state="started", start_paused=True, run_strategy=strategy, wait=True, **MACHINE)
    assert again["changed"] is False


def test_an_existing_vm_never_runs_unpaused_before_its_pause(world: World, task: Task) -> None:
    task(running=False, **MACHINE)
    world.requests.clear()
    task(state="started", start_paused=True, run_strategy="Always", wait=True)
    assert world.sent("PATCH") == []
    assert conditions(world) == {"Paused"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"state": "present"}, "start_paused says how state=started starts a guest", id="another state"),
        pytest.param({"run_strategy": "Once"}, "run strategy is Once starts by itself", id="starts by itself"),
    ],
)
def test_an_impossible_paused_start_is_refused(task: Task, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        task(**{"state": "started", "start_paused": True, **MACHINE, **options})


def test_waiting_for_a_guest_that_a_user_paused_fails(task: Task) -> None:
    task(**MACHINE)
    task(state="paused", wait=True)
    with pytest.raises(VirtError, match="will not be running: its guest is paused; unpause it"):
        task(state="started", wait=True, memory="2Gi")


def test_a_request_that_the_control_plane_does_not_support_is_reported(world: World, task: Task) -> None:
    task(**MACHINE)
    world.not_built, world.unknown = {"pause"}, {"reset"}
    with pytest.raises(VirtError, match=r"cannot pause .*the control plane of this cluster does not do that \("):
        task(state="paused")
    with pytest.raises(VirtError, match=r"cannot reset .*is not served .*too old to know this operation"):
        task(state="reset")


def test_a_concurrent_pause_is_noticed(world: World, task: Task) -> None:
    """Somebody pauses the guest between the read and the request; the next attempt finds it paused."""
    task(**MACHINE)

    def others(command: str, _path: str) -> None:
        if command == "PUT":
            world.mischief = None
            fake_guests.operate(world, "PUT", ("default", "web"), "pause", {})

    world.mischief = others
    assert task(state="paused")["changed"] is False
    assert len(world.sent("PUT")) == 1


def test_a_condition_is_waited_for_too(world: World, task: Task) -> None:
    wanted = {"type": "AgentConnected", "status": "True"}
    with pytest.raises(TimedOut) as caught:
        task(wait=True, wait_condition=wanted, wait_timeout=1, **MACHINE)
    assert caught.value.message == (
        "VirtualMachine default/web is running, but its condition AgentConnected is not True after 1 s: it is missing;"
        " install and start qemu-guest-agent in the guest"
    )
    assert caught.value.facts["reason"] == "it is missing; install and start qemu-guest-agent in the guest"
    world.objects[INSTANCE]["status"]["conditions"].append({"type": "AgentConnected", "status": "True"})
    assert task(wait=True, wait_condition=wanted, **MACHINE)["changed"] is False
    assert task(wait=True, wait_condition={"type": "RestartRequired", "status": "False"}, **MACHINE)["changed"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({}, "set wait=true", id="no wait"),
        pytest.param({"wait": True, "state": "absent"}, "no object is left that could have a condition", id="absent"),
    ],
)
def test_a_condition_without_wait_is_refused(task: Task, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        task(wait_condition={"type": "Ready", "status": "True"}, **MACHINE, **options)


@pytest.mark.parametrize("spelt", [{"run_strategy": "Always"}, {"run_strategy": "Manual"}, {"running": False}])
@pytest.mark.parametrize("options", [{"state": "started"}, {"state": "stopped"}, {"state": "restarted"}])
def test_check_mode_shows_the_run_strategy_after_a_power_state(
    world: World, task: Task, spelt: dict[str, Any], options: dict[str, Any]
) -> None:
    for machine in ({**spelt, **MACHINE}, {}):  # first it is created, then it exists
        foreseen = task(check_mode=True, diff=True, **options, **machine)
        assert ("virtualmachines", "default", "web") not in world.objects or not machine
        done = task(diff=True, **options, **machine)
        kept = [{key: item.get(key) for key in ("changed", "method")} for item in (foreseen, done)]
        assert kept[0] == kept[1]
        assert foreseen["result"]["spec"].get("runStrategy") == done["result"]["spec"].get("runStrategy")
        strategy = {"run_strategy": "Always"} if options["state"] == "stopped" else {"run_strategy": "Halted"}
        task(**strategy)


def test_check_mode_predicts_the_start_of_a_machine_created_halted(task: Task) -> None:
    foreseen = task(check_mode=True, state="started", start_paused=True, **MACHINE)

    assert (foreseen["method"], foreseen["result"]["spec"]["runStrategy"]) == ("start", "Always")


@pytest.mark.parametrize("state", ["started", "restarted"])
@pytest.mark.parametrize(
    ("strategy", "method"),
    [("Always", "create"), ("Halted", "create"), ("Once", "create"), ("RerunOnFailure", "create"), ("Manual", "start")],
)
def test_a_created_machine_starts_by_itself_or_is_started_and_never_restarted(
    world: World, task: Task, strategy: str, method: str, state: str
) -> None:
    """Its instance may exist by the next read, and Once allows no restart."""
    foreseen = task(check_mode=True, state=state, run_strategy=strategy, **MACHINE)
    done = task(state=state, run_strategy=strategy, **MACHINE)

    assert INSTANCE in world.objects
    assert (foreseen["method"], done["method"]) == (method, method)
