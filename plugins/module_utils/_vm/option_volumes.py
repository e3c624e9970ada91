# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes that the options image and cloud_init make, and the disks that these need. Pure.

Apart, for a task that says all of it in spec needs none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.errors import BadArgument
from . import manifest, shape
from .cluster import Kind
from .keyed_lists import Path, key_of

IMAGE_VOLUME = "containerdisk"
CLOUD_INIT_VOLUME = "cloudinit"

Object = dict[str, Any]


def volumes(params: Mapping[str, Any]) -> list[tuple[str, Path, Any]]:
    """Return option, place and value of each volume that an option makes."""
    found: list[tuple[str, Path, Any]] = []
    if params.get("image"):
        source = {"containerDisk": {"image": params["image"]}}
        found.append(("image", shape.VOLUMES, [{"name": IMAGE_VOLUME, **source}]))
    if params.get("cloud_init"):
        source = _cloud_init(params["cloud_init"])
        found.append(("cloud_init", shape.VOLUMES, [{"name": CLOUD_INIT_VOLUME, **source}]))
    return found


def with_disks(vm: Object, params: Mapping[str, Any], kind: Kind) -> tuple[Object, frozenset[str]]:
    """Add a disk for each volume that an option makes and that no disk is declared for."""
    path = kind.inside(shape.DISKS)
    declared = {key_of(path, disk) for disk in manifest.at(vm, path) or ()}
    needed = [
        name for option, name in (("image", IMAGE_VOLUME), ("cloud_init", CLOUD_INIT_VOLUME)) if params.get(option)
    ]
    added = [name for name in needed if name not in declared]
    if added:
        vm = manifest.laid(
            vm, manifest.below(path, [{"name": name, "disk": {"bus": "virtio"}} for name in added]), "image"
        )
    return vm, frozenset(added)


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
