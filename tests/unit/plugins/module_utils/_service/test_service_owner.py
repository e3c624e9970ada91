# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An existing Service with the name of the exposed machine: it stays as it is unless it clearly belongs to the
machine.
"""

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
    pytest.param({"type": "ExternalName", "externalName": "a.b"}, [], r"is an alias of a\.b", id="another name"),
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
def test_a_service_that_does_not_belong_to_the_machine_stays(
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
def test_a_service_of_the_machine_is_changed_and_deleted(
    world: World, expose: Expose, spec: dict[str, Any], owners: list[dict[str, Any]], state: str
) -> None:
    put_service(world, spec, owners)

    assert expose(vm="web", ports=PORT, state=state)["changed"] is True


def test_a_service_moves_to_another_machine_when_its_name_is_given(world: World, expose: Expose) -> None:
    put_service(world, {"selector": {"vmi.kubevirt.io/id": "db"}})
    with pytest.raises(VirtError, match="selects other Pods"):
        expose(name="web", vm="web", state="absent")

    assert expose(name="web", vm="web", ports=PORT)["changed"] is True

    assert world.objects[KEY]["spec"]["selector"] == {"vmi.kubevirt.io/id": "web"}


@pytest.mark.parametrize("spec", [{}, {"selector": {"app": "shop"}}])
def test_a_given_name_does_not_claim_a_service_without_a_machine(
    world: World, expose: Expose, spec: dict[str, Any]
) -> None:
    put_service(world, spec)

    with pytest.raises(VirtError, match="Service default/web "):
        expose(name="web", vm="web", ports=PORT)


def test_the_service_of_a_replica_set_is_recognized_by_the_labels_of_the_set(world: World, expose: Expose) -> None:
    """It has no owner: without the set, nothing shows that it belongs to it."""
    workers = {"replicaset": "workers", "owned": False}
    expose(**workers, ports=PORT)
    assert expose(**workers, ports=[{"port": 81}])["changed"] is True
    assert expose(**workers, state="absent", check_mode=True)["method"] == "delete"

    del world.objects["virtualmachineinstancereplicasets", "default", "workers"]

    with pytest.raises(VirtError, match=r"\(app=workers\).*name alone"):
        expose(**workers, state="absent")
