# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the option that a refused field comes from. Pure.

A user of `cloud_init` wrote no `volumes[1]`, and one of `disks` gave one of those that are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._client.errors import Invalid
from . import manifest, option_volumes, shape
from .cluster import VM, Kind
from .keyed_lists import Path
from .request import VmRequest

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_LISTS = {
    shape.VOLUMES: "volumes",
    shape.DISKS: "disks",
    (*shape.DEVICES, "interfaces"): "interfaces",
    (*shape.MACHINE, "networks"): "networks",
}
"""Lists with an option of their own. An entry of it has another place there than in the object."""
_OF_VOLUMES = {option_volumes.IMAGE_VOLUME: "image", option_volumes.CLOUD_INIT_VOLUME: "cloud_init"}


def named(error: Invalid, request: VmRequest, body: dict[str, Any]) -> Invalid:
    """Return the error, which names the options too that refused fields come from."""
    found = {}
    for cause in error.facts.get("causes") or ():
        option = option_of(cause["field"], request.options, body, request.kind)
        if option is not None:
            found.setdefault(option, cause["field"])
    if not found:
        return error
    told = "; ".join(f"{field} is what the option {option} says" for option, field in found.items())
    return Invalid(f"{error.message} ({told})", **error.facts)


def option_of(field: str, options: Mapping[str, frozenset[str]], body: dict[str, Any], kind: Kind = VM) -> str | None:
    """Return the option that made a field of the object that was sent, and of which entry; None if no option did.

    options: those that were given, with the names of their entries.
    """
    path, item = _parsed(field)
    for where, own in _LISTS.items():
        at = kind.inside(where)
        items = manifest.at(body, at) if path[: len(at)] == at else None
        if isinstance(items, list) and item is not None and item < len(items):
            name = items[item].get("name")
            if name in options.get(own, ()):
                return f"{own} ({name})"
            option = _OF_VOLUMES.get(name) if own in ("volumes", "disks") else None
            return option if option in options else None
    domain = kind.inside(shape.DOMAIN)
    for option, begin in (("cpu", (*domain, "cpu")), ("memory", (*domain, "memory"))):
        if option in options and path[: len(begin)] == begin:
            return option
    return None


def _parsed(field: str) -> tuple[Path, int | None]:
    """Return the names in a field path, and the first index."""
    steps = _STEP.findall(field)
    indices = [int(index) for _name, index in steps if index]
    return tuple(name for name, _index in steps if name), indices[0] if indices else None
