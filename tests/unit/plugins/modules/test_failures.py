# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that a failed task returns beside its message: all are documented."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_guests
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._port_forward.conftest import a_free_port
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._vm.wait.test_last_lines import launch, log
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World, serving
from ansible_collections.virtops.kubevirt.tests.unit.plugins.modules.test_modules import ROOT, run

ANSIBLES = {"changed", "diff", "exception", "failed", "invocation", "msg", "warnings"}
"""Keys of results that Ansible itself adds."""
WEB = {"name": "web", "namespace": "default"}
MACHINE = {"domain": {"memory": {"guest": "1Gi"}}}
TASKS: dict[str, dict[str, Any]] = {
    "kubevirt_vm": {**WEB, "memory": "1Gi", "run_strategy": "Always"},
    "kubevirt_vmi": WEB,
    "kubevirt_replicaset": {**WEB, "definition": {"spec": {"replicas": 1, "template": {"spec": MACHINE}}}},
    "kubevirt_pool": {
        **WEB,
        "definition": {"spec": {"replicas": 1, "virtualMachineTemplate": {"spec": {"template": {"spec": MACHINE}}}}},
    },
    "kubevirt_service": {**WEB, "vm": "web", "ports": [{"port": 80}]},
    "kubevirt_migration": WEB,
    "kubevirt_migration_info": WEB,
    "kubevirt_vm_info": WEB,
    "kubevirt_vmi_info": WEB,
    "kubevirt_replicaset_info": WEB,
    "kubevirt_pool_info": WEB,
    "kubevirt_control_plane_info": {},
    "kubevirt_console": {**WEB, "steps": [{"send": "uptime"}]},
    "kubevirt_port_forward": {**WEB, "port": 80, "local_port": a_free_port()},
    "kubevirt_screenshot": {**WEB, "dest": "/tmp/virtops-never-written.png"},
}
"""One for each module that uses an API server."""
NOT_WAITING = (
    *("kubevirt_service", "kubevirt_control_plane_info", "kubevirt_console", "kubevirt_port_forward"),
    "kubevirt_screenshot",
)
WAITING = [name for name in TASKS if name not in NOT_WAITING]
REFUSAL = {"status", "server_reason", "causes"}


def documented(name: str) -> dict[str, Any]:
    module = importlib.import_module(f"ansible_collections.virtops.kubevirt.plugins.modules.{name}")
    result: dict[str, Any] = yaml.safe_load(module.RETURN)
    return result


def failed(name: str, world: World, /, **arguments: Any) -> dict[str, Any]:
    with serving(world) as url:
        result, output = run(name, host=url, **arguments)
    assert result.get("failed") is True, output
    return result


def a_refusal() -> Refused:
    return Refused(403, "Forbidden", "no", causes=[{"field": "spec", "message": "is not for you"}])


def test_every_module_that_uses_an_api_server_is_tested_here() -> None:
    those = {path.stem for path in (ROOT / "plugins/modules").glob("*.py") if "_client.frame" in path.read_text()}
    those |= {
        path.stem for path in (ROOT / "plugins/modules").glob("*.py") if "_client import frame" in path.read_text()
    }

    assert set(TASKS) == those


@pytest.mark.parametrize("name", TASKS)
def test_return_values_of_a_refusal_are_documented(name: str) -> None:
    world = World()
    world.refuse_next = [a_refusal() for _unused in range(5)]

    result = failed(name, world, **TASKS[name])

    assert result["status"] == 403
    assert REFUSAL <= set(result) - ANSIBLES <= set(documented(name))


@pytest.mark.parametrize("name", WAITING)
def test_return_values_of_a_timeout_are_documented(name: str) -> None:
    result = failed(name, in_vain(), **TASKS[name], wait=True, wait_timeout=1)

    assert set(result) - ANSIBLES
    assert set(result) - ANSIBLES <= set(documented(name))


def test_return_values_of_a_partial_failure_are_documented() -> None:
    vms = [TASKS["kubevirt_vm"], {**WEB, "name": "refused", "memory": "1Gi", "definition": {"spec": {"unknown": 1}}}]

    result = failed("kubevirt_vm", in_vain(), vms=vms, wait=True, wait_timeout=1)

    waited, refused = result["results"]
    assert "printable_status" in waited
    assert refused["status"] == 422
    assert {*waited, *refused} <= set(documented("kubevirt_vm")["results"]["contains"])


@pytest.mark.parametrize("no_log", [False, True])
def test_a_failed_wait_shows_the_console_unless_the_task_has_no_log(no_log: bool) -> None:
    world = World()
    arguments = {**TASKS["kubevirt_vm"], "wait_condition": {"type": "AgentConnected"}, "wait": True, "wait_timeout": 1}
    machine = {"metadata": {**WEB}, "spec": {"runStrategy": "Always", "template": {}}}
    world.create("virtualmachines", "default", machine, dry_run=False)
    launch(world)
    world.mischief = log(b"panic\n")

    result = failed("kubevirt_vm", world, **arguments, _ansible_no_log=no_log)

    assert ("panic" in result["msg"], result.get("console")) == ((False, None) if no_log else (True, ["panic"]))


def in_vain() -> World:
    """Return a world in which nothing starts."""
    world = World()
    world.unschedulable = "0/1 nodes are available"
    status = {"phase": "Scheduling", "conditions": []}
    metadata = {"name": "web", "namespace": "default"}
    world.put("virtualmachineinstances", {"metadata": dict(metadata), "spec": {}, "status": status})
    for plural in fake_guests.KEEPERS:
        world.put(plural, {"metadata": dict(metadata), "spec": {"replicas": 2}, "status": {}})
    return world


def test_a_warning_about_a_node_is_ansibles_own() -> None:
    """In the result it would cause a deprecation warning too."""
    with serving(World()) as url:
        result, output = run("kubevirt_migration", host=url, from_node="node-9")

    assert [item for item in result["warnings"] if "no node node-9" in str(item)], output
    assert not result.get("deprecations"), output
