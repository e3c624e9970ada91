# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading VMs and instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    BadArgument,
    NotFound,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import wait_for
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
SETS = "virtualmachineinstancereplicasets"
MACHINE = {"memory": "1Gi", "cloud_init": {"user_data": "canary", "type": "no_cloud"}}
DEFAULTS: dict[str, Any] = {"label_selectors": [], "field_selectors": [], "wait_timeout": 1, "hidden_fields": ["spec"]}


def test_one_by_name_and_all_of_the_cluster(task: Task, api: Api) -> None:
    task(**MACHINE)
    task(namespace="other", **MACHINE)
    one = info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "default"}, api)
    assert one["api_found"] is True
    assert [vm["metadata"]["namespace"] for vm in one["resources"]] == ["default"]
    assert "spec" not in one["resources"][0]
    everywhere = info.virtual_machines({**DEFAULTS, "name": "web"}, api)
    assert len(everywhere["resources"]) == 2
    assert len(info.instances(DEFAULTS, api)["resources"]) == 2


def test_secrets_are_not_shown(task: Task, api: Api) -> None:
    task(**MACHINE)
    assert "canary" not in str(info.virtual_machines({**DEFAULTS, "hidden_fields": []}, api))


def test_absent_and_uninstalled_are_no_errors(world: World, api: Api) -> None:
    assert info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "d"}, api)["resources"] == []
    world.kubevirt_installed = False
    assert info.virtual_machines(DEFAULTS, api) == {"changed": False, "api_found": False, "resources": []}


@pytest.mark.parametrize("read", [info.virtual_machines, info.instances, info.replica_sets])
def test_waiting_for_an_unknown_kind_fails_at_once(world: World, api: Api, read: Task) -> None:
    world.kubevirt_installed = False
    for where in ({}, {"name": "web", "namespace": "d"}):
        with pytest.raises(NotFound, match=r"is KubeVirt .* installed in this cluster"):
            read({**DEFAULTS, "wait": True, "wait_timeout": 60, **where}, api)
    assert len(world.requests) == 2


GUEST = {**DEFAULTS, "hidden_fields": [], "namespace": "default", "guest": True}


def test_agents_are_queried_and_guests_without_one_are_named(
    world: World, task: Task, of_instances: Task, api: Api
) -> None:
    of_instances(name="mute", memory="1Gi")
    world.has_agents = True
    of_instances(name="talks", memory="1Gi")
    world.put("virtualmachineinstances", {"metadata": {"name": "young", "namespace": "default"}, "status": {}})
    world.requests.clear()
    mute, talks, young = info.instances(GUEST, api)["guests"]
    assert (mute["name"], mute["agent"], mute["reason"].partition(";")[0]) == (
        "mute", False, "no guest agent is connected"
    )  # fmt: skip
    assert (talks["agent"], talks["info"]["hostname"]) == (True, "web")
    assert ([user["userName"] for user in talks["users"]], len(talks["filesystems"])) == (["root"], 1)
    assert (young["agent"], young["reason"]) == (False, "the guest is not running (phase not reported)")
    assert len(world.requests) == 4, "nobody is asked who has no agent"
    world.has_agents = False
    (gone,) = info.instances({**GUEST, "name": "talks"}, api)["guests"]
    assert (gone["agent"], "does not have guest agent connected" in gone["reason"]) == (False, True)
    assert "guests" not in info.instances({**GUEST, "guest": False}, api)


def test_a_control_plane_without_guest_agent_queries_is_reported(world: World, of_instances: Task, api: Api) -> None:
    world.has_agents = True
    of_instances(memory="1Gi")
    world.unknown = {"guestosinfo"}
    with pytest.raises(VirtError, match=r"does not serve guestosinfo.*leave out guest=true"):
        info.instances(GUEST, api)


def test_waiting_for_a_missing_machine_fails(api: Api) -> None:
    with pytest.raises(TimedOut, match="is not running after 1 s: it does not exist"):
        info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "d", "wait": True}, api)


def test_waiting_for_a_halted_machine_names_its_strategy(task: Task, api: Api) -> None:
    """The message once suggested to check virt-controller, although the strategy was the cause."""
    task(**MACHINE, run_strategy="Halted")
    with pytest.raises(TimedOut) as caught:
        info.virtual_machines({**DEFAULTS, "name": "web", "namespace": "default", "wait": True, "running": True}, api)

    assert "its run strategy is Halted, so nothing starts it" in str(caught.value)
    assert "virt-controller" not in str(caught.value)


def test_all_namespaces_share_the_timeout_of_the_task(task: Task, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for namespace in ("default", "other"):
        task(namespace=namespace, **MACHINE)
    began = []

    def note(*_arguments: Any, **options: Any) -> dict[str, Any]:
        began.append((options["start"], options["timeout_seconds"]))
        return {}

    monkeypatch.setattr(wait_for, "wait_for", note)
    info.virtual_machines({**DEFAULTS, "wait": True}, api)

    assert began == [began[0], began[0]]
    assert began[0][1] == DEFAULTS["wait_timeout"]


def test_waiting_for_an_existing_machine(task: Task, api: Api) -> None:
    task(**MACHINE)
    assert len(info.virtual_machines({**DEFAULTS, "namespace": "default", "wait": True}, api)["resources"]) == 1
    assert len(info.instances({**DEFAULTS, "namespace": "default", "wait": True}, api)["resources"]) == 1
    task(state="stopped")
    stopped = {**DEFAULTS, "namespace": "default", "wait": True, "running": False}
    assert len(info.virtual_machines(stopped, api)["resources"]) == 1


AGENT = {"type": "AgentConnected", "status": "True", "reason": None}


def test_a_condition_replaces_readiness(world: World, task: Task, of_sets: Task, api: Api) -> None:
    task(**MACHINE, run_strategy="Halted")
    of_sets(name="web", definition={"spec": {"replicas": 1, "paused": True, "selector": {}, "template": {"spec": {}}}})
    waits = {**DEFAULTS, "name": "web", "namespace": "default", "wait": True, "wait_condition": AGENT}
    for plural, read in (("virtualmachines", info.virtual_machines), (SETS, info.replica_sets)):
        with pytest.raises(
            TimedOut, match="exists, but its condition AgentConnected is not True after 1 s: it is missing"
        ):
            read(waits, api)
        result = world.objects[plural, "default", "web"]
        result["status"] = {"conditions": [{"type": "AgentConnected", "status": "True"}]}
        assert len(read(waits, api)["resources"]) == 1


def test_a_condition_of_an_instance_is_read_from_the_instance(world: World, task: Task, api: Api) -> None:
    task(**MACHINE)
    waits = {**DEFAULTS, "namespace": "default", "wait": True, "wait_condition": AGENT}
    for read in (info.virtual_machines, info.instances):
        with pytest.raises(TimedOut, match="AgentConnected"):
            read(waits, api)
    instance = world.objects["virtualmachineinstances", "default", "web"]
    instance["status"]["conditions"].append({"type": "AgentConnected", "status": "True"})
    for read in (info.virtual_machines, info.instances):
        assert len(read(waits, api)["resources"]) == 1


def test_a_condition_and_running_are_waited_for_together(world: World, task: Task, api: Api) -> None:
    task(**MACHINE, run_strategy="Halted")
    waits = {**DEFAULTS, "namespace": "default", "wait": True, "wait_condition": {**AGENT, "status": "False"}}

    assert len(info.virtual_machines(waits, api)["resources"]) == 1
    with pytest.raises(TimedOut, match="its run strategy is Halted"):
        info.virtual_machines({**waits, "running": True}, api)


def test_a_condition_without_wait_is_refused(api: Api) -> None:
    with pytest.raises(BadArgument, match="set wait=true"):
        info.instances({**DEFAULTS, "wait_condition": AGENT}, api)


def test_running_without_wait_is_refused(api: Api) -> None:
    with pytest.raises(BadArgument, match="set wait=true"):
        info.virtual_machines({**DEFAULTS, "running": True}, api)


READERS = [info.virtual_machines, info.instances, info.replica_sets, info.pools]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.parametrize("more", [{}, {"wait_condition": AGENT}])
def test_check_mode_waits_for_nothing_that_an_earlier_task_would_create(
    world: World, api: Api, read: Task, installed: bool, more: dict[str, Any]
) -> None:
    world.kubevirt_installed = installed
    options = {**DEFAULTS, "name": "web", "namespace": "default", "wait": True, "wait_timeout": 240, **more}
    result = read(options, api, check_mode=True)

    assert (result["api_found"], result["resources"]) == (installed, [])
    assert "check mode does not wait: VirtualMachine" in result["warnings"][0]
    assert "default/web does not exist, unless an earlier task creates it" in result["warnings"][0]
    assert "warnings" not in read({**options, "wait": False, "wait_condition": None}, api, check_mode=True)


def test_check_mode_returns_what_exists(task: Task, api: Api) -> None:
    task(**MACHINE, run_strategy="Halted")
    options = {**DEFAULTS, "name": "web", "namespace": "default", "wait": True, "wait_timeout": 240, "running": True}
    result = info.virtual_machines(options, api, check_mode=True)

    assert (len(result["resources"]), "warnings" in result) == (1, False)
