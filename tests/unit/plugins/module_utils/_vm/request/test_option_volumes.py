# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes generated from options, and their disks."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.field_path import nested, value_at
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import manifest, shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.option_volumes import completed

SCRATCH = {"name": "scratch", "disk": {"bus": "virtio"}}
KINDS = [kinds.VM, kinds.VMI, kinds.REPLICA_SET, kinds.POOL]
NAMED = {"name": "web", "namespace": "default"}


def test_a_declared_disk_for_a_generated_volume_stays() -> None:
    built = manifest.build({**NAMED, "image": "x", "disks": [{"name": "containerdisk", "cdrom": {"bus": "sata"}}]})
    assert built.obj["spec"]["template"]["spec"]["domain"]["devices"]["disks"] == [
        {"name": "containerdisk", "cdrom": {"bus": "sata"}}
    ]
    assert built.default_disks == frozenset()


def test_a_generated_volume_has_a_disk_by_default() -> None:
    built = manifest.build({**NAMED, "image": "x", "cloud_init": {"user_data_secret": "first", "type": "config_drive"}})
    machine = built.obj["spec"]["template"]["spec"]
    assert machine["volumes"] == [
        {"name": "containerdisk", "containerDisk": {"image": "x"}},
        {"name": "cloudinit", "cloudInitConfigDrive": {"secretRef": {"name": "first"}}},
    ]
    assert built.default_disks == {"containerdisk", "cloudinit"}


def test_empty_cloud_init_is_refused() -> None:
    with pytest.raises(BadArgument, match="cloud_init: it is empty"):
        manifest.build({**NAMED, "cloud_init": {"type": "no_cloud"}})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"disks": [SCRATCH]}, id="disks"),
        pytest.param({"spec": {"domain": {"devices": {"disks": [SCRATCH]}}}}, id="spec"),
        pytest.param("definition", id="definition"),
    ],
)
def test_the_disk_of_the_image_is_the_first_one(kind: kinds.Kind, options: Any) -> None:
    """The guest boots from the first disk, unless one has a bootOrder."""
    path = kind.inside(shape.DISKS)
    given = {"definition": nested(path, [SCRATCH])} if options == "definition" else options
    built = manifest.build({**NAMED, "image": "x", "cloud_init": {"user_data": "x"}, **given}, kind)
    assert [disk["name"] for disk in value_at(built.obj, path)] == ["containerdisk", "scratch", "cloudinit"]


def test_a_live_object_without_the_disk_of_the_image_gets_it_as_its_first_one() -> None:
    built = manifest.build({**NAMED, "image": "x"})
    image = value_at(built.obj, shape.DISKS)[0]
    live, laid = nested(shape.DISKS, [SCRATCH]), nested(shape.DISKS, [SCRATCH, image])
    assert value_at(completed(laid, live, built.default_disks, kinds.VM), shape.DISKS) == [image, SCRATCH]


def test_the_order_of_existing_and_of_declared_disks_stays() -> None:
    image = {"name": "containerdisk", "cdrom": {"bus": "sata"}}
    live = nested(shape.DISKS, [SCRATCH, image])
    assert completed(live, live, frozenset({"containerdisk"}), kinds.VM) is live
    built = manifest.build({**NAMED, "image": "x", "disks": [SCRATCH, image]})
    assert value_at(built.obj, shape.DISKS) == [SCRATCH, image]


@pytest.mark.parametrize(
    ("option", "value", "volume", "words"),
    [
        pytest.param(
            "image", "x", {"name": "containerdisk", "persistentVolumeClaim": {"claimName": "c"}},
            "image is a containerDisk in volume containerdisk, and volumes gives this volume the source persis",
            id="another source",
        ),
        pytest.param(
            "cloud_init", {"user_data": "x"}, {"name": "seed", "cloudInitNoCloud": {"userData": "y"}},
            "cloud_init: volume seed has data for cloud-init too, and a guest reads only one of the two",
            id="another seed",
        ),
        pytest.param(
            "cloud_init", {"user_data": "x"}, {"name": "cloudinit", "emptyDisk": {"capacity": "1Gi"}},
            "cloud_init is a cloudInitNoCloud in volume cloudinit, and volumes gives this volume the source emptyDisk",
            id="another kind of volume",
        ),
    ],
)  # fmt: skip
def test_a_volume_that_contradicts_the_option_is_refused(option: str, value: Any, volume: Any, words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        manifest.build({**NAMED, option: value, "volumes": [volume]})


def test_a_volume_of_the_same_source_adds_to_that_of_the_option() -> None:
    pull = {"name": "containerdisk", "containerDisk": {"imagePullPolicy": "Always"}}
    built = manifest.build({**NAMED, "image": "x", "volumes": [pull]})
    assert value_at(built.obj, shape.VOLUMES) == [
        {"name": "containerdisk", "containerDisk": {"image": "x", "imagePullPolicy": "Always"}}
    ]


def test_a_machine_with_a_seed_gets_no_second_one() -> None:
    built = manifest.build({**NAMED, "cloud_init": {"user_data": "x"}})
    seed = nested(shape.VOLUMES, [{"name": "seed", "cloudInitConfigDrive": {"userData": "y"}}])
    with pytest.raises(BadArgument, match="cloud_init: volume seed has data"):
        manifest.over_live(built, built.obj, seed)


def test_a_machine_that_has_the_disk_already_is_not_changed() -> None:
    built = manifest.build({**NAMED, "cloud_init": {"user_data": "x"}, "image": "x"})
    live = manifest.over_live(built, built.obj, {})
    assert manifest.over_live(built, built.obj, live) is live
