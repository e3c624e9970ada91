# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of the options image and cloud_init, and the disks that they need. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._client.errors import BadArgument
from ..field_path import nested, value_at
from ..kinds import Kind
from ..merge.keyed_lists import key_of
from . import shape

IMAGE_VOLUME = "containerdisk"
CLOUD_INIT_VOLUME = "cloudinit"

Object = dict[str, Any]


def volume(option: str, value: Any) -> Object:
    """Return the volume that an option declares."""
    if option == "image":
        return {"name": IMAGE_VOLUME, "containerDisk": {"image": value}}
    return {"name": CLOUD_INIT_VOLUME, **_cloud_init(value)}


def with_disks(obj: Object, params: Mapping[str, Any], kind: Kind) -> tuple[Object, frozenset[str]]:
    """Return the declaration with a disk for each of these volumes that has none, and the names of the new disks."""
    path = kind.inside(shape.DISKS)
    declared = {key_of(path, disk) for disk in value_at(obj, path) or ()}
    needed = [
        name for option, name in (("image", IMAGE_VOLUME), ("cloud_init", CLOUD_INIT_VOLUME)) if params.get(option)
    ]
    added = [name for name in needed if name not in declared]
    if added:
        disks = [{"name": name, "disk": {"bus": "virtio"}} for name in added]
        obj = shape.lay(obj, nested(path, disks), "image")
    return obj, frozenset(added)


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
