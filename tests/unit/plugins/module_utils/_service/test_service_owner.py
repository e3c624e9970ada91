# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a Service is that has the name of what is exposed: what is not seen to be for it stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Expose = Callable[..., dict[str, Any]]
KEY = ("services", "default", "web")
PORT = [{"port": 80, "target_port": 8080}]
MACHINE = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "a former one's"}
OTHERS = [
    pytest.param({}, [], "has no selector", id="endpoints made by hand"),
    pytest.param({"type": "ExternalName", "externalName": "a.b"}, [], r"stands for the name a\.b", id="another name"),
    pytest.param({"selector": {"vmi.kubevirt.io/id": "db"}}, [], r"id=db\)", id="another machine's"),
    pytest.param({"selector": {"vm.kubevirt.io/name": "db"}}, [], r"name=db\)", id="another machine's, by virtctl"),
    pytest.param({"selector": {"vmi.kubevirt.io/id": "web", "a": "b"}}, [], r"\(a=b,vmi", id="some of its Pods"),
    pytest.param({"selector": {"a": "b"}}, [{**MACHINE, "name": "db"}], r"\(a=b\)", id="belongs to another machine"),
    pytest.param({"selector": {"a": "b"}}, [{**MACHINE, "apiVersion": "x/v1"}], r"\(a=b\)", id="belongs to no machine"),
]


def put_service(world: World, spec: dict[str, Any], owners: list[dict[str, Any]] | None = None) -> None:
    metadata = {"name": "web", "namespace": "default", "ownerReferences": owners or []}
    world.put("services", {"metadata": metadata, "spec": {"ports": [{"port": 5432}], **spec}})


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize(("spec", "owners", "words"), OTHERS)
def test_what_is_not_seen_to_be_the_machines_is_left_alone(
    world: World, expose: Expose, spec: dict[str, Any], owners: list[dict[str, Any]], words: str, state: str
) -> None:
    put_service(world, spec, owners)
    before = copy.deepcopy(world.objects[KEY])

    with pytest.raises(VirtError, match=f"Service default/web .*{words}.*VirtualMachine default/web"):
        expose(vm="web", ports=PORT, state=state)

    assert world.objects[KEY] == before


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize(
    ("spec", "owners"),
    [
        pytest.param({"selector": {"vmi.kubevirt.io/id": "web"}}, [], id="finds its Pods"),
        pytest.param({"selector": {"vm.kubevirt.io/name": "web"}}, [], id="made by virtctl"),
        pytest.param({"selector": {"app": "web"}}, [MACHINE], id="belongs to it"),
        pytest.param({}, [MACHINE], id="belongs to it, and finds nothing"),
    ],
)
def test_what_is_the_machines_is_changed_and_deleted(
    world: World, expose: Expose, spec: dict[str, Any], owners: list[dict[str, Any]], state: str
) -> None:
    put_service(world, spec, owners)

    assert expose(vm="web", ports=PORT, state=state)["changed"] is True


def test_a_service_is_moved_to_another_machine_where_its_name_is_said(world: World, expose: Expose) -> None:
    put_service(world, {"selector": {"vmi.kubevirt.io/id": "db"}})
    with pytest.raises(VirtError, match="selects other Pods"):
        expose(name="web", vm="web", state="absent")

    assert expose(name="web", vm="web", ports=PORT)["changed"] is True

    assert world.objects[KEY]["spec"]["selector"] == {"vmi.kubevirt.io/id": "web"}


@pytest.mark.parametrize("spec", [{}, {"selector": {"app": "shop"}}])
def test_a_name_that_is_said_makes_nothing_else_a_machines(world: World, expose: Expose, spec: dict[str, Any]) -> None:
    put_service(world, spec)

    with pytest.raises(VirtError, match="Service default/web "):
        expose(name="web", vm="web", ports=PORT)


def test_a_replica_sets_service_is_known_by_the_sets_labels(world: World, expose: Expose) -> None:
    """One that does not belong to it; without the set nobody can tell any more whose it is."""
    workers = {"replicaset": "workers", "owned": False}
    expose(**workers, ports=PORT)
    assert expose(**workers, ports=[{"port": 81}])["changed"] is True
    assert expose(**workers, state="absent", check_mode=True)["method"] == "delete"

    del world.objects["virtualmachineinstancereplicasets", "default", "workers"]

    with pytest.raises(VirtError, match=r"\(app=workers\).*name alone"):
        expose(**workers, state="absent")


@pytest.mark.parametrize("state", ["present", "absent"])
def test_somebody_elses_service_of_the_name_is_neither_taken_over_nor_deleted(
    world: World, expose: Expose, state: str
) -> None:
    """It has its name from what is exposed: nobody has said that this very Service is meant."""
    world.put("services", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "shop"}}})
    before = copy.deepcopy(world.objects[KEY])

    with pytest.raises(VirtError, match=r"Service default/web selects other Pods \(app=shop\).*give name.*or selector"):
        expose(vm="web", ports=PORT, state=state)

    assert world.objects[KEY] == before
    assert expose(vm="web", ports=PORT, selector={"vmi.kubevirt.io/id": "web"})["changed"] is True
    assert expose(name="web", state="absent")["changed"] is True
