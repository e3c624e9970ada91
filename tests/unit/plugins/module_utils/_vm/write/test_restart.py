# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""restart_required is right at once, and restart=if_required restarts once, whenever virt-controller looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import restart
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write.outcome import (
    Outcome,
    is_observed,
    restart_required,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
REQUIRED = {"type": "RestartRequired", "status": "True", "message": "memory needs a restart"}
INSTANCE = ("virtualmachineinstances", "default", "web")


def a_vm(generation: int = 2, *conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "default", "generation": generation}
    return {"metadata": metadata, "status": {"created": True, "conditions": list(conditions), **status}}


@pytest.mark.parametrize(
    ("vm", "method", "required"),
    [
        pytest.param(a_vm(2, desiredGeneration=2), "patch", False, id="no condition"),
        pytest.param(a_vm(2, REQUIRED, desiredGeneration=2), "patch", True, id="required"),
        pytest.param(a_vm(2, REQUIRED, desiredGeneration=2), None, True, id="by an earlier change"),
        pytest.param(a_vm(2, {**REQUIRED, "status": "False"}, desiredGeneration=2), "patch", False, id="False"),
        pytest.param(a_vm(2, desiredGeneration=1), "patch", None, id="not looked at"),
        pytest.param(a_vm(2, REQUIRED), "patch", True, id="older KubeVirt"),
        pytest.param(a_vm(2, created=False, desiredGeneration=1), "patch", False, id="it does not run"),
        pytest.param(a_vm(2, REQUIRED, desiredGeneration=2), "restart", False, id="restarted by this task"),
        pytest.param(None, "delete", None, id="gone"),
    ],
)
def test_whether_a_restart_is_required(vm: dict[str, Any] | None, method: str | None, required: bool | None) -> None:
    assert restart_required(Outcome(changed=True, method=method, after=vm)) is required


def slow_controller(world: World, *, needs_restart: bool = True, answers: bool = True) -> None:
    """Make virt-controller look at a change only when somebody waits for that; drop the condition on a restart."""
    original = world.reconcile

    def status(namespace: str, name: str, *, start: bool = False) -> None:
        old = world.vm(name).get("status", {}).get("desiredGeneration", 0)
        original(namespace, name, start=start)
        vm = world.vm(name)
        if not start and old and vm["metadata"]["generation"] > old:
            vm["status"]["desiredGeneration"] = old

    def looks(_method: str, path: str) -> None:
        vm = world.objects.get(("virtualmachines", "default", "web"))
        if answers and "virtualmachines?" in path and vm is not None:
            if needs_restart and vm["status"].get("desiredGeneration") != vm["metadata"]["generation"]:
                vm["status"]["conditions"].append(REQUIRED)
            vm["status"]["desiredGeneration"] = vm["metadata"]["generation"]

    world.reconcile, world.mischief = status, looks  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("needs_restart", [False, True])
def test_the_result_says_at_once_whether_a_restart_is_required(
    world: World, task: Task, needs_restart: bool, wait: bool
) -> None:
    task(**MACHINE)
    slow_controller(world, needs_restart=needs_restart)

    assert task(memory="2Gi", wait=wait)["restart_required"] is needs_restart
    assert task(memory="2Gi", wait=wait)["restart_required"] is needs_restart, "a later task sees it too"


def test_a_task_without_a_change_sends_no_request_for_it(world: World, task: Task) -> None:
    task(**MACHINE)
    world.requests.clear()

    assert task(**MACHINE)["restart_required"] is False
    assert len(world.requests) == 1


def test_a_controller_that_does_not_look_is_reported(world: World, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "SECONDS", 0.0)
    task(**MACHINE)
    slow_controller(world, answers=False)
    result = task(memory="2Gi")

    assert "restart_required" not in result
    assert "virt-controller has not looked at it" in result["warnings"][0]


@pytest.mark.parametrize("state", ["present", "started"])
def test_a_change_restarts_the_machine_if_that_is_required(world: World, task: Task, state: str) -> None:
    task(**MACHINE)
    slow_controller(world)
    uid = world.objects[INSTANCE]["metadata"]["uid"]
    result = task(state=state, memory="2Gi", restart="if_required", wait=True)

    assert (result["changed"], result["method"], result["restart_required"]) == (True, "restart", False)
    assert world.objects[INSTANCE]["metadata"]["uid"] != uid


def test_no_restart_is_made_that_is_not_required(world: World, task: Task) -> None:
    task(**MACHINE)
    slow_controller(world, needs_restart=False)

    assert task(memory="2Gi", restart="if_required", wait=True)["method"] == "patch"
    assert task(memory="2Gi", restart="if_required")["changed"] is False
    assert world.sent("PUT") == []


def test_a_restart_that_an_earlier_task_left_is_made(world: World, task: Task) -> None:
    task(**MACHINE)
    slow_controller(world)
    task(memory="2Gi")

    foreseen = task(memory="2Gi", restart="if_required", check_mode=True)
    done = task(memory="2Gi", restart="if_required")

    assert [(item["changed"], item["method"]) for item in (foreseen, done)] == [(True, "restart")] * 2


def test_check_mode_does_not_say_what_only_the_controller_knows(world: World, task: Task) -> None:
    task(**MACHINE)
    result = task(memory="2Gi", restart="if_required", check_mode=True)

    assert (result["method"], "restart_required" in result, "warnings" in result) == ("patch", False, False)


def test_a_task_that_depends_on_the_controller_fails_without_it(world: World, task: Task) -> None:
    task(**MACHINE)
    slow_controller(world, answers=False)
    with pytest.raises(TimedOut, match="is virt-controller running") as caught:
        task(memory="2Gi", restart="if_required", wait_timeout=1)

    assert caught.value.facts["changed"] is True


def test_restart_without_a_use_is_refused(task: Task) -> None:
    with pytest.raises(BadArgument, match="restart says whether a change may restart a machine; with state=stopped"):
        task(state="stopped", restart="if_required")


def test_a_vm_without_a_status_is_as_observed() -> None:
    assert is_observed({"metadata": {"generation": 1}})
