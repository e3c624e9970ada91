# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tasks keep and what they remove: sequences of several tasks, with concurrent writes of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.field_path import value_at, with_value
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import shape
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import DECLARED_ITEMS
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
ROOT = {"name": "root", "containerDisk": {"image": "registry/guest:1"}}
DATA = {"name": "data", "emptyDisk": {"capacity": "1Gi"}}
HOT = {"name": "hot", "persistentVolumeClaim": {"claimName": "hot", "hotpluggable": True}}
BIOS = {"bootloader": {"bios": {}}}
EFI = {"bootloader": {"efi": {}}}


def a_definition(*volumes: dict[str, Any], **machine: Any) -> dict[str, Any]:
    disks = [{"name": entry["name"], "disk": {"bus": "virtio"}} for entry in volumes]
    domain = {"devices": {"disks": disks}, **machine.pop("domain", {})}
    spec = {"domain": domain, "volumes": [dict(entry) for entry in volumes], **machine}
    return {"spec": {"runStrategy": "Halted", "template": {"spec": spec}}}


def volumes(world: World) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = value_at(world.vm("web"), shape.VOLUMES)
    return result


def disks(world: World) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = value_at(world.vm("web"), shape.DISKS)
    return result


def names(items: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in items]


def plug(world: World, item: dict[str, Any]) -> None:
    """Add a volume as the control plane does for a permanent hotplug."""
    body = with_value(world.vm("web"), shape.VOLUMES, [*volumes(world), item])
    world.patch("virtualmachines", "default", "web", {"spec": body["spec"]}, dry_run=False, manager="virt-controller")


def faster(world: World, *items: dict[str, Any]) -> None:
    """Create the VM between the read and the write of the next task."""

    def appear(method: str, _path: str) -> None:
        if method != "GET" and ("virtualmachines", "default", "web") not in world.objects:
            vm = {"metadata": {"name": "web", "namespace": "default", "generation": 1}, **a_definition(*items)}
            world.put("virtualmachines", vm)

    world.mischief = appear  # type: ignore[assignment]


@pytest.mark.parametrize(
    "options", [{"volumes": [DATA]}, {"definition": {"spec": {"template": {"spec": {"volumes": [DATA]}}}}}]
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_machine_created_concurrently_is_not_created_again(
    world: World, task: Task, options: dict[str, Any], check_mode: bool
) -> None:
    """Otherwise it would start, and without its disk: a create sends the whole object."""
    faster(world, ROOT)
    result = task(memory="1Gi", check_mode=check_mode, **options)

    assert result["method"] in ("patch", "apply")
    assert result["result"]["spec"]["runStrategy"] == "Halted"
    assert "root" in names(value_at(result["result"], shape.VOLUMES))
    assert world.vm("web")["spec"]["runStrategy"] == "Halted"


@pytest.fixture(params=[False, True], ids=["atomic lists", "keyed lists"])
def machine(request: pytest.FixtureRequest, world: World, task: Task) -> World:
    """A VM with volumes root and data from a definition, on both kinds of server."""
    world.keyed_lists = request.param
    task(definition=a_definition(ROOT, DATA))
    return world


def test_options_that_name_a_list_extend_it_and_keep_its_order(machine: World, task: Task) -> None:
    more = {"name": "more", "emptyDisk": {"capacity": "2Gi"}}
    options: dict[str, Any] = {"volumes": [more, DATA], "disks": [{"name": "more", "disk": {"bus": "sata"}}]}
    assert task(**options)["changed"] is True
    assert (names(volumes(machine)), names(disks(machine))) == (["root", "data", "more"], ["root", "data", "more"])
    assert task(**options)["changed"] is False


def test_a_new_image_keeps_cloud_init_and_the_disk(world: World, task: Task) -> None:
    task(image="registry/guest:1", cloud_init={"user_data": "#!/bin/sh", "type": "no_cloud"}, memory="1Gi")
    task(disks=[{"name": "containerdisk", "disk": {"bus": "sata"}}])
    task(image="registry/guest:2")
    assert names(volumes(world)) == ["containerdisk", "cloudinit"]
    assert volumes(world)[0]["containerDisk"] == {"image": "registry/guest:2"}
    assert disks(world)[0]["disk"] == {"bus": "sata"}, "the option names the image, not the bus"


def test_null_removes_a_field_an_item_and_a_list(machine: World, task: Task) -> None:
    task(disks=[{"name": "root", "bootOrder": 1, "cache": "none"}])
    task(disks=[{"name": "root", "cache": None, "bootOrder": 2}])
    assert disks(machine)[0] == {"name": "root", "disk": {"bus": "virtio"}, "bootOrder": 2}
    gone = {"disks": [{"name": "data", "disk": None}], "volumes": [{"name": "data", "emptyDisk": None}]}
    assert task(**gone)["changed"] is True
    assert (names(volumes(machine)), names(disks(machine))) == (["root"], ["root"])
    assert task(**gone)["changed"] is False
    task(spec={"volumes": None})
    assert volumes(machine) is None


def test_a_disk_hotplugged_by_others_survives_changes_of_the_definition(machine: World, task: Task) -> None:
    plug(machine, HOT)
    assert task(definition=a_definition(ROOT, DATA))["changed"] is False
    for definition, remaining in (
        (a_definition(ROOT, DATA, hostname="h"), ["root", "data", "hot"]),
        (a_definition(ROOT, hostname="h"), ["root", "hot"]),
        (a_definition(ROOT, DATA), ["root", "hot", "data"]),
        (a_definition(), ["hot"]),
        (a_definition(ROOT), ["hot", "root"]),
    ):
        assert task(definition=definition)["changed"] is True
        assert names(volumes(machine)) == remaining
        assert task(definition=definition)["changed"] is False
    assert volumes(machine)[0] == HOT


def test_a_list_removed_from_the_definition_keeps_items_hotplugged_by_others(machine: World, task: Task) -> None:
    plug(machine, HOT)
    task(definition=a_definition(ROOT))
    definition = a_definition(ROOT)
    del definition["spec"]["template"]["spec"]["volumes"]
    for hostname in ("one", "two"):
        definition["spec"]["template"]["spec"]["hostname"] = hostname
        assert task(definition=definition)["changed"] is True
        assert volumes(machine) == [HOT]
        assert task(definition=definition)["changed"] is False


def test_labels_of_others_stay_when_ours_are_no_longer_declared(world: World, task: Task) -> None:
    task(definition={**a_definition(ROOT), "metadata": {"labels": {"ours": "1", "both": "2"}}})
    theirs = {"metadata": {"labels": {"theirs": "3", "both": "4"}}}
    world.patch("virtualmachines", "default", "web", theirs, dry_run=False)
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    world.patch("virtualmachines", "default", "web", selector, dry_run=False)
    assert task(definition=a_definition(ROOT, nodeSelector=None))["changed"] is True
    assert world.vm("web")["metadata"]["labels"] == {"theirs": "3", "both": "4"}


def test_a_key_of_an_item_that_is_no_longer_declared_is_removed(machine: World, task: Task) -> None:
    definition = a_definition(ROOT, DATA)
    definition["spec"]["template"]["spec"]["domain"]["devices"]["disks"][0]["cache"] = "none"
    task(definition=definition)
    plug(machine, HOT)
    assert task(definition=a_definition(ROOT, DATA))["changed"] is True
    assert disks(machine)[0] == {"name": "root", "disk": {"bus": "virtio"}}


def test_a_disk_that_others_unplugged_and_plugged_in_again_is_theirs(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT, DATA))
    body = with_value(world.vm("web"), shape.VOLUMES, [ROOT])
    devices = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
    body = with_value(body, shape.DOMAIN, devices)
    world.patch("virtualmachines", "default", "web", {"spec": body["spec"]}, dry_run=False)
    assert task(definition=a_definition(ROOT))["changed"] is False
    plug(world, DATA)
    assert task(definition=a_definition(ROOT))["changed"] is False
    assert names(volumes(world)) == ["root", "data"]


def test_an_item_added_between_read_and_write_stays(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT))
    for options in ({"volumes": [DATA]}, {"definition": a_definition(ROOT, DATA, hostname="h")}):
        original = world._existing if "volumes" in options else world.apply
        plugged = {**HOT, "name": f"hot-{len(volumes(world))}"}

        def first(*args: Any, original: Any = original, plugged: Any = plugged, **kwargs: Any) -> Any:
            world.__dict__.pop("patch", None)
            world.__dict__.pop("apply", None)
            plug(world, plugged)
            return getattr(world, "patch" if "dry_run" in kwargs and kwargs["manager"] else "apply")(*args, **kwargs)

        setattr(world, "patch" if "volumes" in options else "apply", first)
        assert task(**options)["changed"] is True
        assert {plugged["name"], "data"} <= set(names(volumes(world)))


def test_a_vm_of_an_earlier_version_without_the_annotation_loses_undeclared_items(world: World, task: Task) -> None:
    """That version applied whole lists; while nobody has changed one, all its items are ours."""
    task(definition=a_definition(ROOT, DATA))
    del world.vm("web")["metadata"]["annotations"]
    assert task(definition=a_definition(ROOT))["changed"] is True
    assert names(volumes(world)) == ["root"]


@pytest.mark.parametrize("is_check", [False, True], ids=["run", "check mode"])
def test_a_definition_switches_mutually_exclusive_fields(world: World, task: Task, is_check: bool) -> None:
    task(definition=a_definition(ROOT))
    firmware = {"spec": {"template": {"spec": {"domain": {"firmware": BIOS}}}}}
    world.patch("virtualmachines", "default", "web", firmware, dry_run=False)
    result = task(definition=a_definition(ROOT, domain={"firmware": EFI}), check_mode=is_check)
    assert result["result"]["spec"]["template"]["spec"]["domain"]["firmware"]["bootloader"] == EFI["bootloader"]


def test_a_field_written_beside_a_null_is_removed_when_no_longer_declared(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT))
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    world.patch("virtualmachines", "default", "web", selector, dry_run=False)
    result = task(definition=a_definition(ROOT, nodeSelector=None, hostname="h"))
    assert result["changed"] is True
    spec = world.vm("web")["spec"]["template"]["spec"]
    assert ("nodeSelector" in spec, spec["hostname"]) == (False, "h")
    assert task(definition=a_definition(ROOT, nodeSelector=None))["changed"] is True
    assert "hostname" not in world.vm("web")["spec"]["template"]["spec"]


@pytest.mark.parametrize("force", [False, True], ids=["changed", "replaced"])
def test_written_fields_stay_ours_although_a_controller_writes_at_once(world: World, task: Task, force: bool) -> None:
    """The controller reacts to the change of the spec, and the first write of our annotation conflicts."""
    task(definition=a_definition(ROOT))
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "a"}}}}}
    world.patch("virtualmachines", "default", "web", selector, dry_run=False)
    writes: list[str] = []

    def act(method: str, _path: str) -> None:
        writes.extend([method] if method != "GET" else [])
        if len(writes) == 2 and method != "GET":
            note = {"metadata": {"annotations": {"controller.example.org/seen": "1"}}}
            world.patch("virtualmachines", "default", "web", note, dry_run=False, manager="a-controller")

    world.mischief = act  # type: ignore[assignment]
    definition = a_definition(ROOT, nodeSelector=None, hostname="h")
    assert task(definition=definition, force=force)["changed"] is True
    world.mischief = None
    sent = len(world.sent("PATCH"))
    assert task(definition=definition)["changed"] is False
    assert len(world.sent("PATCH")) == sent, "the record is complete by now"
    assert task(definition=a_definition(ROOT))["changed"] is True
    assert "hostname" not in world.vm("web")["spec"]["template"]["spec"]


def test_a_null_in_spec_removes_the_field(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT, nodeSelector={"zone": "a"}))
    assert task(spec={"nodeSelector": None})["changed"] is True
    assert "nodeSelector" not in world.vm("web")["spec"]["template"]["spec"]
    assert task(spec={"nodeSelector": None})["changed"] is False


def test_force_changes_once_although_others_add_annotations_and_defaults(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT), annotations={"mine": "1"})
    note = {"metadata": {"annotations": {"controller.example.org/seen": "1"}}}
    world.patch("virtualmachines", "default", "web", note, dry_run=False, manager="a-controller")
    filled = {"spec": {"template": {"spec": {"domain": {"firmware": {"serial": "s"}}}}}}
    world.patch("virtualmachines", "default", "web", filled, dry_run=False, manager="virt-controller")
    plug(world, HOT)
    assert task(definition=a_definition(ROOT, DATA), force=True)["method"] == "replace"
    assert task(definition=a_definition(ROOT, DATA), force=True)["changed"] is False
    vm = world.vm("web")
    annotations = set(vm["metadata"]["annotations"]) - {DECLARED_ITEMS}
    assert annotations == {"controller.example.org/seen"}, "the controller's is not ours to say, and ours is gone"
    assert vm["spec"]["template"]["spec"]["domain"]["firmware"]["serial"] == "s"
    assert names(volumes(world)) == ["root", "data"], "what is not declared goes, whoever plugged it in"


def test_force_reverts_manual_changes_of_the_spec(world: World, task: Task) -> None:
    task(definition=a_definition(ROOT))
    by_hand = {"spec": {"template": {"spec": {"hostname": "h"}}}}
    world.patch("virtualmachines", "default", "web", by_hand, dry_run=False, manager="kubectl-edit")
    assert task(definition=a_definition(ROOT), force=True)["changed"] is True
    assert "hostname" not in world.vm("web")["spec"]["template"]["spec"]
