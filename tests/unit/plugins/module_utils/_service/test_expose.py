# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_service on a fake API server: selector, kept fields, owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._service import exposure
from ansible_collections.virtops.kubevirt.plugins.modules import kubevirt_service
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World

Expose = Callable[..., dict[str, Any]]
KEY = ("services", "default", "web")
PORT = [{"port": 80, "target_port": 8080}]


def test_a_vm_is_exposed_once(world: World, expose: Expose) -> None:
    result = expose(vm="web", ports=PORT, diff=True)
    assert (result["method"], result["diff"]["before"]) == ("create", {})
    stored = world.objects[KEY]
    assert stored["spec"]["selector"] == {"vmi.kubevirt.io/id": "web"}
    assert stored["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    assert stored["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "blockOwnerDeletion": False,
            "uid": world.vm("web")["metadata"]["uid"],
        }
    ]  # fmt: skip
    world.requests.clear()
    assert expose(vm="web", ports=PORT)["changed"] is False
    assert [method for method, _path in world.requests] == ["GET", "GET"]


def test_an_owned_service_is_released_and_keeps_its_other_owners(world: World, expose: Expose) -> None:
    """Otherwise it would be deleted with a machine that no longer owns it."""
    expose(vm="web", ports=PORT)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": "u"}
    world.objects[KEY]["metadata"]["ownerReferences"].append(other)
    assert expose(vm="web", ports=PORT, owned=False)["changed"] is True
    assert world.objects[KEY]["metadata"]["ownerReferences"] == [other]
    assert expose(vm="web", ports=PORT, owned=False)["changed"] is False


def test_without_an_owner_one_request_is_enough(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT, owned=False)
    world.requests.clear()
    assert expose(vm="web", ports=PORT, owned=False)["changed"] is False
    assert len(world.requests) == 1
    assert "ownerReferences" not in world.objects[KEY]["metadata"]


def test_the_ports_of_the_interfaces_are_the_default_of_a_new_service(world: World, expose: Expose) -> None:
    expose(vm="web")
    ports = [(item["name"], item["port"], item["protocol"]) for item in world.objects[KEY]["spec"]["ports"]]
    assert ports == [("port-22", 22, "TCP"), ("dns", 53, "UDP")]
    with pytest.raises(BadArgument, match="ports are missing: VirtualMachineInstance default/bare declares none"):
        expose(vmi="bare")


def test_fields_without_an_option_stay(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT, labels={"a": "1"})
    world.objects[KEY]["spec"]["sessionAffinity"] = "ClientIP"
    assert expose(vm="web", type="NodePort", labels={"b": "2"})["method"] == "patch"
    stored = world.objects[KEY]
    assert stored["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}]
    assert (stored["spec"]["sessionAffinity"], stored["metadata"]["labels"]) == ("ClientIP", {"a": "1", "b": "2"})
    assert expose(vm="web", type="NodePort", ports=PORT)["changed"] is False


def test_a_port_that_is_not_listed_is_removed(world: World, expose: Expose) -> None:
    expose(vm="web", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81, "target_port": "http"}])
    assert expose(vm="web", ports=[{"name": "a", "port": 80}])["changed"] is True
    assert [item["port"] for item in world.objects[KEY]["spec"]["ports"]] == [80]
    assert (
        expose(vm="web", ports=[{"port": 80, "target_port": "8080"}])["result"]["spec"]["ports"][0]["targetPort"]
        == 8080
    )


def test_a_port_keeps_its_port_of_the_nodes_and_what_others_set(world: World, expose: Expose) -> None:
    """For the API server a port that gets a name is a new one, and clients outside would lose their way to it."""
    expose(vm="web", type="NodePort", ports=[{"port": 80}])
    world.objects[KEY]["spec"]["ports"] = [
        {"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30123, "appProtocol": "http"}
    ]
    more = [{"name": "https", "port": 443}, {"name": "http", "port": 80, "target_port": 8080}]
    assert expose(vm="web", ports=more)["changed"] is True
    http, https = world.objects[KEY]["spec"]["ports"]
    assert http == {
        "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30123, "appProtocol": "http",
    }  # fmt: skip
    assert (https["name"], https["port"]) == ("https", 443)
    assert expose(vm="web", ports=more)["changed"] is False, "the order of the ports does not count"
    assert expose(vm="web", ports=[*reversed(more)])["changed"] is False


def test_a_declared_port_of_the_nodes_is_taken_from_another_port(world: World, expose: Expose) -> None:
    expose(vm="web", type="NodePort", ports=[{"name": "a", "port": 80, "node_port": 30100}, {"name": "b", "port": 81}])
    expose(vm="web", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81, "node_port": 30100}])
    first, second = world.objects[KEY]["spec"]["ports"]
    assert (first.get("nodePort"), second["nodePort"]) != (30100, 30100)
    assert second["nodePort"] == 30100


def test_ports_of_one_number_have_names_of_their_own(world: World, expose: Expose) -> None:
    """A Service with two ports of one name is refused."""
    forwarded = [{"port": 53}, {"port": 53, "protocol": "UDP"}, {"port": 80, "name": "port-443"}, {"port": 443}]
    world.vm("web")["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["ports"] = forwarded
    expose(vm="web")
    names = [(port["name"], port["port"], port["protocol"]) for port in world.objects[KEY]["spec"]["ports"]]
    assert names == [
        ("port-53", 53, "TCP"), ("port-53-udp", 53, "UDP"), ("port-443", 80, "TCP"), ("port-443-tcp", 443, "TCP"),
    ]  # fmt: skip


def test_null_removes_a_label_and_does_not_make_one(world: World, expose: Expose) -> None:
    options = {"vm": "web", "ports": PORT, "labels": {"a": None, "b": "1"}, "annotations": {"note": None}}
    assert expose(**options)["changed"] is True
    assert world.objects[KEY]["metadata"]["labels"] == {"b": "1"}
    assert not world.objects[KEY]["metadata"].get("annotations")
    world.objects[KEY]["metadata"]["labels"]["a"] = "2"
    assert expose(**options)["changed"] is True
    assert world.objects[KEY]["metadata"]["labels"] == {"b": "1"}
    assert expose(**options)["changed"] is False


def test_a_replica_set_is_selected_by_its_labels(world: World, expose: Expose) -> None:
    assert expose(replicaset="workers", ports=PORT)["result"]["spec"]["selector"] == {"app": "workers"}
    world.objects["virtualmachineinstancereplicasets", "default", "workers"]["spec"]["selector"] = {
        "matchExpressions": [{"key": "app", "operator": "Exists"}]
    }
    with pytest.raises(BadArgument, match="selects by more than labels, which a Service cannot; give labels"):
        expose(replicaset="workers", ports=PORT)


def test_a_deleted_owner_of_the_same_name_is_replaced_and_others_stay(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT)
    other = {"kind": "ConfigMap", "name": "c", "uid": "other"}
    world.objects[KEY]["metadata"]["ownerReferences"].append(other)
    assert expose(vm="web", ports=PORT)["changed"] is False
    world.vm("web")["metadata"]["uid"] = "new"
    assert expose(vm="web", ports=PORT)["changed"] is True
    assert [item["uid"] for item in world.objects[KEY]["metadata"]["ownerReferences"]] == ["other", "new"]


def test_a_concurrent_port_change_is_not_overwritten(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT)
    rounds = []

    def others(command: str, _path: str) -> None:
        if command == "PATCH":
            rounds.append(command)
            if len(rounds) == 1:
                world.put(KEY[0], {**world.objects[KEY], "spec": {**world.objects[KEY]["spec"], "seen": True}})

    world.mischief = others
    expose(vm="web", ports=[{"port": 81}])
    assert (len(rounds), world.objects[KEY]["spec"]["seen"]) == (2, True)


def test_check_mode_predicts_and_changes_nothing(world: World, expose: Expose) -> None:
    assert expose(vm="web", ports=PORT, check_mode=True)["method"] == "create"
    assert expose(vm="not-yet", ports=PORT, check_mode=True)["changed"] is True, "an earlier task would make it"
    assert KEY not in world.objects
    expose(vm="web", ports=PORT)
    assert expose(name="web", state="absent", check_mode=True)["method"] == "delete"
    assert KEY in world.objects


@pytest.mark.parametrize("options", [{"vm": "web"}, {"replicaset": "web"}, {"vmi": "web", "ports": PORT}])
@pytest.mark.parametrize("installed", [False, True])
def test_check_mode_on_a_first_run_predicts_a_service_for_what_is_to_come(
    world: World, expose: Expose, options: dict[str, Any], installed: bool
) -> None:
    world.objects.clear()
    world.kubevirt_installed = installed
    result = expose(**options, check_mode=True, wait=True)

    assert (result["changed"], result["method"], result["result"]["metadata"]["name"]) == (True, "create", "web")
    assert world.objects == {}


def test_check_mode_predicts_a_service_in_a_namespace_that_is_to_come(world: World, expose: Expose) -> None:
    def refused(*_arguments: Any, **_options: Any) -> None:
        raise Refused(404, "NotFound", 'namespaces "default" not found', name="default", kind="namespaces")

    world.create = refused  # type: ignore[method-assign, assignment]

    assert expose(vm="web", ports=PORT, check_mode=True)["method"] == "create"
    with pytest.raises(VirtError, match="namespaces"):
        expose(vm="web", ports=PORT)


def test_a_service_that_is_being_deleted_is_waited_for_and_created_again(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT)
    leaving = world.objects[KEY]
    leaving["metadata"].update(deletionTimestamp="2026-11-24T08:00:00Z", finalizers=["example.com/balancer"])
    assert expose(vm="web", ports=PORT, check_mode=True)["method"] == "create"
    with pytest.raises(TimedOut, match=r"Service default/web cannot be created after 1 s.*example.com/balancer"):
        expose(vm="web", ports=PORT, wait_timeout=1)

    def ends(_method: str, path: str) -> None:
        if "watch=" in path:
            world.drop(*KEY)

    world.mischief = ends  # type: ignore[assignment]

    assert expose(vm="web", ports=PORT)["method"] == "create"
    assert world.objects[KEY]["metadata"]["uid"] != leaving["metadata"]["uid"]


def test_absent_is_idempotent(world: World, expose: Expose) -> None:
    expose(vm="web", ports=PORT)
    assert expose(name="web", state="absent", wait=True)["method"] == "delete"
    assert KEY not in world.objects
    assert expose(name="web", state="absent", wait=True)["changed"] is False
    assert expose(vm="web", state="absent")["changed"] is False


def test_waiting_ends_with_an_address(world: World, expose: Expose) -> None:
    with pytest.raises(TimedOut, match="default/web is not reachable after 1 s: it has no address") as caught:
        expose(vm="web", ports=PORT, type="LoadBalancer", wait=True, wait_timeout=1)
    assert caught.value.facts["changed"] is True
    world.objects[KEY]["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    assert expose(vm="web", type="LoadBalancer", wait=True)["result"]["status"]["loadBalancer"]["ingress"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({}, "name is missing: give it, or name the object to expose", id="nothing"),
        pytest.param({"name": "x", "vm": "", "state": "absent"}, "vm is empty; name the object to expose", id="empty"),
        pytest.param({"name": "x"}, "no object to expose: give vm, vmi or replicaset", id="no target"),
        pytest.param({"vm": "a.b"}, "vm 'a.b' cannot also be the name of its Service.*option name", id="dot in a vm"),
        pytest.param({"vmi": "1a", "ports": PORT}, "vmi '1a' cannot also be the name of its Service", id="digit first"),
        pytest.param({"vm": "web", "name": "a.b"}, "name 'a.b' is not a Service's name", id="name of the Service"),
        pytest.param({"vm": "web", "ports": [{"port": 0}]}, r"ports\[0\].port is 0: a port is between", id="port"),
        pytest.param(
            {"vm": "web", "ports": [{"port": 1, "target_port": True}]},
            r"ports\[0\].target_port: must be a port's number or name, not true or false",
            id="target port, a bool",
        ),
        pytest.param(
            {"vm": "web", "ports": [{"port": 1, "target_port": [1]}]},
            r"ports\[0\].target_port: must be a port's number or name, not a list",
            id="target port, a list",
        ),
        pytest.param({"vm": "web", "ports": [{"port": 1}, {"port": 2}]}, r"ports\[0\]: a name is missing", id="names"),
        pytest.param({"vm": "web", "selector": {"a": 1}}, r"selector\[a\]: the value is not a text", id="selector"),
        pytest.param({"vm": "web", "labels": {"a": 1}}, r"labels\[a\]: the value is not a text", id="label"),
        pytest.param(
            {"vm": "web", "selector": {"a": None}}, r"selector\[a\]: the value is not a text", id="null selector"
        ),
        pytest.param({"vm": "web", "annotations": {"a": True}}, r"annotations\[a\]: the value is not", id="annotation"),
        pytest.param({"vm": "web", "wait_timeout": 0}, "wait_timeout is 0: it must be positive", id="time"),
    ],
)
def test_bad_options_are_named(expose: Expose, options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        expose(**options)


def test_a_missing_machine_is_not_exposed(expose: Expose) -> None:
    with pytest.raises(
        VirtError, match="Service default/none cannot expose VirtualMachine default/none: there is no such machine in"
    ):
        expose(vm="none", ports=PORT)


def test_a_password_in_an_address_is_not_shown(world: World, expose: Expose) -> None:
    result = expose(vm="web", ports=PORT, annotations={"from": "https://joe:canary@h"}, diff=True)
    assert "canary" not in str(result)
    assert world.objects[KEY]["metadata"]["annotations"] == {"from": "https://joe:canary@h"}


def test_a_long_name_has_the_id_that_kubevirt_gives_it() -> None:
    assert exposure.instance_id("x" * 63) == "x" * 63
    assert exposure.instance_id("x" * 64) == "x" * 54 + "-bb2fa3ee"


def test_each_example_makes_a_change_and_a_second_run_none(world: World, expose: Expose) -> None:
    for task in yaml.safe_load(kubevirt_service.EXAMPLES):
        options = task["virtops.kubevirt.kubevirt_service"]
        assert expose(**options)["changed"] is True, task["name"]
        assert expose(**options)["changed"] is False, f"{task['name']}, again"
    assert [name for kind, _namespace, name in world.objects if kind == "services"] == ["work"]
