# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools on a fake API server: create, scale, change, pause, wait, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import rollout
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import pool_change
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_pools import POOLS, change

Task = Callable[..., dict[str, Any]]
LABELS = {"app": "web"}
MACHINE = {"memory": "1Gi", "image": "registry/guest:1", "labels": LABELS}
KEY = (POOLS, "default", "web")
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
}
WHOLE = {"replicas": 1, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": TEMPLATE}


def pool(world: World) -> dict[str, Any]:
    result: dict[str, Any] = world.objects[KEY]["spec"]
    return result


def test_first_run_creates_and_the_second_sends_one_request(world: World, of_pools: Task) -> None:
    assert of_pools(replicas=2, wait=True, **MACHINE)["method"] == "create"
    machine = pool(world)["virtualMachineTemplate"]
    assert (pool(world)["replicas"], pool(world)["selector"]) == (2, {"matchLabels": LABELS})
    assert machine["metadata"]["labels"] == machine["spec"]["template"]["metadata"]["labels"] == LABELS
    assert machine["spec"]["runStrategy"] == "Always", "unless something says otherwise"
    assert world.objects[KEY]["apiVersion"] == "pool.kubevirt.io/v1beta1"
    world.requests.clear()
    assert of_pools(replicas=2, wait=True, **MACHINE)["changed"] is False
    assert len(world.requests) == 1


def test_options_of_a_machine_are_set_in_the_template(world: World, of_pools: Task) -> None:
    of_pools(
        replicas=1, run_strategy="Halted", further_attempts=2, cpu={"cores": 2}, instancetype={"name": "small"},
        data_volume_templates=[{"metadata": {"name": "root"}, "spec": {}}],
        name_generation={"config_maps": True, "secrets": None}, **MACHINE,
    )  # fmt: skip
    machine = pool(world)["virtualMachineTemplate"]["spec"]
    assert machine["runStrategy"] == "Halted"
    assert machine["instancetype"] == {"name": "small"}
    assert [item["metadata"]["name"] for item in machine["dataVolumeTemplates"]] == ["root"]
    assert machine["template"]["metadata"]["annotations"] == {"virtops.kubevirt/further-attempts": "2"}
    assert machine["template"]["spec"]["domain"]["cpu"] == {"cores": 2}
    assert [item["name"] for item in machine["template"]["spec"]["domain"]["devices"]["disks"]] == ["containerdisk"]
    assert pool(world)["nameGeneration"] == {"appendIndexToConfigMapRefs": True}
    assert not {"template", "runStrategy", "dataVolumeTemplates"} & set(pool(world))


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        pytest.param({"max_unavailable": "25%"}, {"maxUnavailable": "25%"}, id="a share"),
        pytest.param({"max_unavailable": "2"}, {"maxUnavailable": 2}, id="a number"),
        pytest.param({"update_strategy": {"type": "unmanaged"}}, {"updateStrategy": {"unmanaged": {}}}, id="unmanaged"),
        pytest.param(
            {"update_strategy": {"type": "proactive", "label_selector": {"matchLabels": LABELS}}},
            {
                "updateStrategy": {
                    "proactive": {"selectionPolicy": {"selectors": {"labelSelector": {"matchLabels": LABELS}}}}
                }
            },
            id="some of them",
        ),
        pytest.param(
            {"scale_in_strategy": {"type": "opportunistic", "state_preservation": "Disabled"}},
            {"scaleInStrategy": {"opportunistic": {"statePreservation": "Disabled"}}},
            id="others scale in",
        ),
        pytest.param(
            {
                "scale_in_strategy": {
                    "type": "proactive", "sort_policy": "Newest",
                    "node_selector_requirements": [{"key": "disk", "operator": "Exists"}],
                }
            },
            {
                "scaleInStrategy": {
                    "proactive": {
                        "selectionPolicy": {
                            "sortPolicy": "Newest",
                            "selectors": {"nodeSelectorRequirementMatcher": [{"key": "disk", "operator": "Exists"}]},
                        }
                    }
                }
            },
            id="who goes first",
        ),
    ],
)  # fmt: skip
def test_strategies_are_options(
    world: World, of_pools: Task, options: dict[str, Any], declared: dict[str, Any]
) -> None:
    of_pools(**MACHINE)
    assert of_pools(**options)["method"] == "patch"
    assert {key: pool(world)[key] for key in declared} == declared
    assert of_pools(**options)["changed"] is False


def test_another_type_of_strategy_replaces_the_old_one(world: World, of_pools: Task) -> None:
    of_pools(update_strategy={"type": "proactive", "sort_policy": "Oldest"}, **MACHINE)
    of_pools(update_strategy={"type": "opportunistic"})
    assert pool(world)["updateStrategy"] == {"opportunistic": {}}


def test_undeclared_fields_of_an_option_stay(world: World, of_pools: Task) -> None:
    of_pools(definition={"spec": WHOLE})
    pool(world)["replicas"] = 5
    pool(world)["virtualMachineTemplate"]["spec"]["runStrategy"] = "Halted"
    spec = {"template": {"spec": {"hostname": "h", "domain": {"devices": {}}}}}
    less = {"selector": WHOLE["selector"], "virtualMachineTemplate": {"metadata": {"labels": LABELS}, "spec": spec}}
    assert of_pools(definition={"spec": less})["method"] == "apply"
    assert of_pools(definition={"spec": less})["changed"] is False
    result = pool(world)
    assert (result["replicas"], result["virtualMachineTemplate"]["spec"]["runStrategy"]) == (5, "Halted")
    assert of_pools(force=True, memory="1Gi", labels=LABELS)["method"] == "replace"
    result = pool(world)
    assert (result["replicas"], result["virtualMachineTemplate"]["spec"]["runStrategy"]) == (5, "Halted")
    assert result["selector"] == {"matchLabels": LABELS}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"memory": "1Gi"}, "labels are missing; they select its machines", id="no labels"),
        pytest.param(
            {"definition": {"spec": {"virtualMachineTemplate": TEMPLATE}}}, "spec.selector is missing", id="no selector"
        ),
        pytest.param({"replicas": -1, **MACHINE}, "replicas is -1: it must not be negative", id="negative"),
        pytest.param({"definition": {"kind": "VirtualMachine"}}, "and kubevirt_vm for that", id="kind"),
        pytest.param({"definition": {"apiVersion": "kubevirt.io/v1"}}, "not of the group pool.kubevirt.io", id="group"),
        pytest.param({"max_unavailable": "some", **MACHINE}, "max_unavailable is 'some': it must be", id="share"),
        pytest.param(
            {"update_strategy": {"type": "opportunistic", "sort_policy": "Oldest"}, **MACHINE},
            "update_strategy: sort_policy chooses machines, and only type=proactive", id="chooses none",
        ),
        pytest.param(
            {"scale_in_strategy": {"type": "unmanaged", "state_preservation": "Disabled"}, **MACHINE},
            "scale_in_strategy: state_preservation is for machines that are deleted", id="deletes none",
        ),
        pytest.param(
            {"definition": {"spec": {"virtualMachineTemplate": None}}}, "virtualMachineTemplate is empty", id="empty"
        ),
        pytest.param(
            {"definition": {"spec": {"virtualMachineTemplate": {"spec": {"template": {"spec": []}}}}}},
            "spec.virtualMachineTemplate.spec.template.spec is not a mapping but a list", id="shape",
        ),
    ],
)  # fmt: skip
def test_invalid_options_are_refused_before_any_request(
    world: World, of_pools: Task, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadArgument, match=words):
        of_pools(**options)
    assert world.objects == {}


def test_a_timeout_reports_the_problem_of_a_machine(world: World, of_pools: Task) -> None:
    world.unschedulable = "0/1 nodes are available"
    with pytest.raises(TimedOut) as caught:
        of_pools(replicas=2, wait=True, wait_timeout=1, **MACHINE)
    assert caught.value.message == (
        "VirtualMachinePool default/web is not ready after 1 s: 0 of 2 machines are ready, 2 exist;"
        " web-0: Unschedulable: 0/1 nodes are available"
    )


def test_a_change_is_waited_for_until_all_machines_run_with_it(world: World, of_pools: Task) -> None:
    of_pools(replicas=2, wait=True, **MACHINE)
    assert of_pools(memory="2Gi", wait=True)["changed"] is True
    world.pools_change = False
    with pytest.raises(TimedOut) as caught:
        of_pools(memory="3Gi", wait=True, wait_timeout=1)
    assert caught.value.facts["reason"] == "machine web-0: it is as it was before the change"
    with pytest.raises(TimedOut):  # nothing else shows a removed field
        of_pools(definition={"spec": {**WHOLE, "replicas": 2}}, force=True, wait=True, wait_timeout=1)


def test_a_running_machine_is_waited_for_until_its_restart(world: World, of_pools: Task) -> None:
    of_pools(replicas=1, wait=True, **MACHINE)
    run = dict(world.objects["virtualmachineinstances", "default", "web-0"])
    world.pools_change = False
    of_pools(memory="2Gi")
    old = world.vm("web-0")["metadata"]["labels"]
    change(world, world.objects[KEY], "web-0")
    world.put("virtualmachineinstances", {**run, "metadata": {**run["metadata"], "labels": old}})
    made_of = pool_change.Change({}, {}, restarts=True)
    machine = world.vm("web-0")
    assert rollout.judge(made_of, machine, machine).done
    assert not rollout.judge_run(machine, world.objects["virtualmachineinstances", "default", "web-0"]).done
    assert not rollout.judge_run(machine, None).done


OLD, NEW = {"a": 1, "template": {"x": 1}}, {"a": 1, "template": {"x": 2}}


def of_template(spec: dict[str, Any], **strategy: Any) -> dict[str, Any]:
    return {"spec": {"virtualMachineTemplate": {"spec": spec}, "updateStrategy": strategy}}


@pytest.mark.parametrize(
    ("after", "restarts"),
    [
        pytest.param(of_template(OLD), None, id="nothing changes"),
        pytest.param(of_template(NEW), True, id="proactive, by default"),
        pytest.param(of_template({**OLD, "a": 2}), False, id="nothing of what runs"),
        pytest.param(of_template(NEW, opportunistic={}), False, id="opportunistic"),
        pytest.param(of_template(NEW, unmanaged={}), None, id="unmanaged"),
        pytest.param(of_template(NEW, proactive={"selectionPolicy": {"selectors": {"x": 1}}}), None, id="a selection"),
    ],
)
def test_which_machines_are_waited_for_after_a_change(after: dict[str, Any], restarts: bool | None) -> None:
    result = pool_change.change_of({}, of_template(OLD), after)
    assert (None if result is None else result.restarts) == restarts


def a_machine(revision: str, uid: str = "u", **spec: Any) -> dict[str, Any]:
    labels = {"kubevirt.io/vm-pool-revision-name": revision}
    return {"metadata": {"name": "web-0", "uid": uid, "labels": labels}, "spec": spec}


@pytest.mark.parametrize(
    ("patch", "vm", "done"),
    [
        pytest.param({"a": 2}, a_machine("1", a=1), False, id="as it was"),
        pytest.param({"a": 2}, a_machine("1", a=2), True, id="has it already"),
        pytest.param({"a": 2}, a_machine("2", a=1), True, id="made from another template"),
        pytest.param({"a": None}, a_machine("1", a=1), False, id="something is taken away"),
        pytest.param({"a": None}, a_machine("1", b=1), True, id="nobody had what is taken away"),
        pytest.param({"a": {"b": None}}, a_machine("1", c=1), True, id="nobody had where it is taken from"),
        pytest.param({"a": {"b": None}}, a_machine("1", a={"c": 1}), True, id="nobody had it there"),
        pytest.param({"a": {"b": {"c": None}}}, a_machine("1", a={}), True, id="nobody had it, deeper"),
        pytest.param({"a": {"b": None}}, a_machine("1", a={"b": 1}), False, id="something is taken away, deeper"),
        pytest.param({"a": {"b": None}, "c": 2}, a_machine("1", c=1), False, id="and something else changes"),
        pytest.param({"a": {}}, a_machine("1"), False, id="something empty comes"),
        pytest.param({"dataVolumeTemplates": None}, a_machine("1"), True, id="nobody had volumes of its own"),
        pytest.param(
            {"dataVolumeTemplates": None}, a_machine("1", dataVolumeTemplates=[{}]), False, id="its volumes are to go"
        ),
        pytest.param({"dataVolumeTemplates": []}, a_machine("1"), False, id="volumes of its own tell nothing"),
        pytest.param({"a": 2}, a_machine("1", uid="other", a=1), True, id="another of its name"),
        pytest.param({"a": 2}, None, True, id="gone"),
    ],
)
def test_whether_a_machine_has_a_change(patch: dict[str, Any], vm: dict[str, Any] | None, done: bool) -> None:
    change_ = pool_change.Change({"u": "1"}, patch, restarts=False)
    assert rollout.judge(change_, a_machine("1"), vm).done is done


def test_deletion_waits_for_machines_and_their_instances(world: World, of_pools: Task) -> None:
    of_pools(replicas=1, wait=True, **MACHINE)
    world.pools_change = False
    with pytest.raises(TimedOut, match="is gone, but its machine still exists after 1 s"):
        of_pools(state="absent", wait=True, wait_timeout=1)
    of_pools(replicas=0, **MACHINE)
    assert of_pools(state="absent", wait=True)["method"] == "delete", "that of the former pool is none of this one"
    assert of_pools(state="absent")["changed"] is False


def test_pools_are_read_and_waited_for(of_pools: Task, api: Api) -> None:
    of_pools(replicas=2, **MACHINE)
    options = {"label_selectors": [], "field_selectors": [], "name": "web", "namespace": "default", "wait": True}
    result = info.pools({**options, "wait_timeout": 2}, api)
    assert [item["status"]["readyReplicas"] for item in result["resources"]] == [2]
