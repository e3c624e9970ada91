# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on the first run of a playbook, when nothing exists that earlier tasks would have created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Invalid, NotFound, VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
STATES = {
    "present": "patch",
    "started": "start",
    "stopped": "stop",
    "restarted": "restart",
    "paused": "pause",
    "unpaused": "unpause",
    "reset": "reset",
    "softrebooted": "softreboot",
}


@pytest.mark.parametrize(("state", "method"), STATES.items())
def test_a_task_that_needs_a_machine_says_what_it_would_do(world: World, task: Task, state: str, method: str) -> None:
    result = task(state=state, labels={"a": "b"}, check_mode=True, wait=True)

    assert (result["changed"], result["method"], result["result"]) == (True, method, {})
    title = "check mode: VirtualMachine default/web"
    text = f"{title}: there is no such machine in namespace default; look at its name, unless an earlier task creates"
    assert result["warnings"][0].startswith(text)
    assert world.sent("POST", "PUT", "PATCH", "DELETE") == []


@pytest.mark.parametrize("state", ["paused", "unpaused", "frozen", "unfrozen"])
def test_a_task_that_needs_an_instance_says_what_it_would_do(of_instances: Task, state: str) -> None:
    assert of_instances(state=state, check_mode=True, wait=True)["changed"] is True


@pytest.mark.parametrize("state", ["paused", "reset"])
def test_a_guest_that_an_earlier_task_would_start(task: Task, of_instances: Task, state: str) -> None:
    task(run_strategy="Halted", **MACHINE)
    result = task(state=state, check_mode=True, wait=True)

    assert result["changed"] is True
    assert f"cannot be {state} now: it does not run" in result["warnings"][0]


def test_members_of_a_set_that_is_to_come(of_sets: Task, of_pools: Task) -> None:
    for task in (of_sets, of_pools):
        result = task(replicas=3, check_mode=True, wait=True)
        assert (result["changed"], result["method"], len(result["warnings"])) == (True, "patch", 1)


def test_a_deletion_of_nothing_changes_nothing(task: Task) -> None:
    result = task(state="absent", check_mode=True, wait=True)

    assert (result["changed"], "warnings" in result) == (False, False)


def test_a_cluster_that_an_earlier_task_would_install(world: World, task: Task) -> None:
    world.kubevirt_installed = False
    created = task(check_mode=True, wait=True, **MACHINE)
    several = task(check_mode=True, vms=[{"name": name} for name in "abcde"], **MACHINE)

    assert (created["changed"], created["method"]) == (True, "create")
    assert created["result"]["spec"]["runStrategy"] == "Always"
    assert "the API server does not know this kind" in created["warnings"][0]
    assert ([item["changed"] for item in several["results"]], len(several["warnings"])) == ([True] * 5, 5)
    with pytest.raises(NotFound):
        task(**MACHINE)


def test_a_namespace_that_an_earlier_task_would_create(world: World, task: Task) -> None:
    def refused(*_arguments: Any, **_options: Any) -> None:
        raise Refused(404, "NotFound", 'namespaces "default" not found', name="default", kind="namespaces")

    world.apply = refused  # type: ignore[method-assign, assignment]
    result = task(check_mode=True, **MACHINE)

    assert (result["changed"], result["method"]) == (True, "create")
    assert 'namespaces "default" not found' in result["warnings"][0]
    with pytest.raises(VirtError):
        task(**MACHINE)


def test_what_is_wrong_is_still_refused(world: World, task: Task) -> None:
    causes = [{"field": "spec.template", "message": "no"}]
    world.refuse_next = [Refused(404, "NotFound", "no", name="web"), Refused(422, "Invalid", "no", causes=causes)]
    with pytest.raises(Invalid):
        task(check_mode=True, **MACHINE)
    with pytest.raises(VirtError, match="To create it, say what it should be"):
        task(check_mode=True, name=None, generate_name="web-")
