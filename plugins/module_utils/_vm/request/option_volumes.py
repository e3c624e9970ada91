# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of the options image and cloud_init, and the disks that they need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from ..._client.errors import BadArgument
from ..field_path import value_at, with_value
from ..kinds import Kind
from ..merge.keyed_lists import key_of
from . import shape

IMAGE_VOLUME = "containerdisk"
CLOUD_INIT_VOLUME = "cloudinit"
SEEDS = ("cloudInitNoCloud", "cloudInitConfigDrive")
"""Kinds of volumes with data for cloud-init."""
_VOLUMES = (("image", IMAGE_VOLUME), ("cloud_init", CLOUD_INIT_VOLUME))

Object = dict[str, Any]


def volume(option: str, value: Any) -> Object:
    """Return the volume that an option declares."""
    if option == "image":
        return {"name": IMAGE_VOLUME, "containerDisk": {"image": value}}
    return {"name": CLOUD_INIT_VOLUME, **_cloud_init(value)}


def with_disks(obj: Object, params: Mapping[str, Any], kind: Kind) -> tuple[Object, frozenset[str]]:
    """Return the declaration with a disk for each of these volumes that has none, and the names of the new disks.

    The disk of the image is the first one, because a guest boots from its first disk unless a disk has a bootOrder.
    """
    path = kind.inside(shape.DISKS)
    disks = value_at(obj, path) or []
    declared = {key_of(path, disk) for disk in disks}
    image, seed = (_missing_disk(option, name, params, declared) for option, name in _VOLUMES)
    if image or seed:
        obj = with_value(obj, path, [*image, *disks, *seed])
    return obj, frozenset(disk["name"] for disk in (*image, *seed))


def _missing_disk(option: str, name: str, params: Mapping[str, Any], declared: AbstractSet[str | None]) -> list[Object]:
    is_needed = params.get(option) and name not in declared
    return [{"name": name, "disk": {"bus": "virtio"}}] if is_needed else []


def completed(laid: Object, live: Object, default_disks: AbstractSet[str], kind: Kind) -> Object:
    """Return a changed live object with the disk of the image as its first one, unless it had this disk before.

    laid: the live object with the declaration laid over it, which appends new disks. Raises BadArgument if the machine
    gets a second volume with data for cloud-init.
    """
    path = kind.inside(shape.DISKS)
    present = {key_of(path, disk) for disk in value_at(live, path) or ()}
    added = default_disks - present
    if CLOUD_INIT_VOLUME in added:
        _check_seeds(value_at(laid, kind.inside(shape.VOLUMES)) or ())
    if IMAGE_VOLUME not in added:
        return laid
    disks = value_at(laid, path) or []
    image = [disk for disk in disks if disk["name"] == IMAGE_VOLUME]
    return with_value(laid, path, [*image, *(disk for disk in disks if disk not in image)])


def check(obj: Object, params: Mapping[str, Any], kind: Kind) -> None:
    """Raise BadArgument for volumes of the declaration that contradict one of these options."""
    for option, name in ((option, name) for option, name in _VOLUMES if params.get(option)):
        source = _source(volume(option, params[option]))
        for other in params.get("volumes") or ():
            if other.get("name") == name and _source(other) not in (None, source):
                raise BadArgument(
                    f"{option} is a {source} in volume {name}, and volumes gives this volume the source"
                    f" {_source(other)}; give the other one another name, or leave out {option}"
                )
    if params.get("cloud_init"):
        _check_seeds(value_at(obj, kind.inside(shape.VOLUMES)) or ())


def _check_seeds(volumes: Iterable[Object]) -> None:
    other = next((item["name"] for item in volumes if item["name"] != CLOUD_INIT_VOLUME and _source(item) in SEEDS), "")
    if other:
        raise BadArgument(
            f"cloud_init: volume {other} has data for cloud-init too, and a guest reads only one of the two; put all"
            " into one, or leave out cloud_init"
        )


def _source(item: Object) -> str | None:
    return next((key for key, value in item.items() if key != "name" and value is not None), None)


def _cloud_init(options: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = {}
    for option, key in (("user_data", "userData"), ("network_data", "networkData")):
        if options.get(option):
            source[key] = options[option]
        if options.get(f"{option}_secret"):
            source["secretRef" if option == "user_data" else "networkDataSecretRef"] = {
                "name": options[f"{option}_secret"]
            }
    if not source:
        raise BadArgument("cloud_init: it is empty; give user_data, network_data or the name of a Secret")
    return {"cloudInitConfigDrive" if options.get("type") == "config_drive" else "cloudInitNoCloud": source}
