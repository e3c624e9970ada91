# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the option that a refused field comes from. Pure.

The server names fields of the object that was sent. A user of cloud_init did not write volumes[1], and the index of an
entry of disks differs from its index in the object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._client.errors import Invalid
from ..field_path import Path, value_at
from ..kinds import VM, Kind
from . import manifest, option_volumes, shape
from .vm_request import VmRequest

_STEP = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[\]]+)")
_LISTS = {
    shape.VOLUMES: "volumes",
    shape.DISKS: "disks",
    (*shape.DEVICES, "interfaces"): "interfaces",
    (*shape.MACHINE, "networks"): "networks",
}
"""Lists that an option declares."""
_SHARED = (shape.MACHINE, *_LISTS)
"""Paths of which an option declares only a part."""
_OPTIONS_OF_VOLUMES = {option_volumes.IMAGE_VOLUME: "image", option_volumes.CLOUD_INIT_VOLUME: "cloud_init"}

_SECRETS = {
    "userData": ("cloud_init.user_data", "user_data_secret"),
    "networkData": ("cloud_init.network_data", "network_data_secret"),
}
"""Inline data, which the server bounds: the option that it comes from, and the one that names a Secret instead."""


def with_options(error: Invalid, request: VmRequest, body: dict[str, Any]) -> Invalid:
    """Return the error with the options that the refused fields come from."""
    fields: dict[str, str] = {}
    for cause in error.facts.get("causes") or ():
        option = option_of(cause["field"], request.options, body, request.kind)
        if option is not None:
            fields.setdefault(option, cause["field"])
    if not fields:
        return error
    text = "; ".join(
        f"{field} comes from the option {option}{_others(field, body)}{_secret(option)}"
        for option, field in fields.items()
    )
    return Invalid(f"{error.message} ({text})", **error.facts)


def option_of(field: str, options: Mapping[str, frozenset[str]], body: dict[str, Any], kind: Kind = VM) -> str | None:
    """Return the option and its entry's name from which a field of the sent object comes, or None.

    options: of the task, each with the names of its entries.
    """
    path, index = _parsed(field)
    for list_path, list_option in _LISTS.items():
        kind_path = kind.inside(list_path)
        items = value_at(body, kind_path) if path[: len(kind_path)] == kind_path else None
        if isinstance(items, list) and index is not None and index < len(items):
            name = items[index].get("name")
            if name in options.get(list_option, ()):
                return f"{list_option} ({name})"
            option = _OPTIONS_OF_VOLUMES.get(name) if list_option in ("volumes", "disks") else None
            return _suboption(option, path) if option in options else None
    for option, (option_path, _make) in manifest.OPTIONS.items():
        kind_path = kind.inside(option_path)
        if option in options and option_path not in _SHARED and path[: len(kind_path)] == kind_path:
            return option
    return None


def _suboption(option: str | None, path: Path) -> str | None:
    return _SECRETS[path[-1]][0] if option == "cloud_init" and path[-1] in _SECRETS else option


def _secret(option: str) -> str:
    """Return which option names a Secret for an option's data; the server's message names a field of the object."""
    secret = dict(_SECRETS.values()).get(option)
    return f"; a Secret is named by cloud_init.{secret}" if secret else ""


def _others(field: str, body: dict[str, Any]) -> str:
    """Return the other names in the list of a refused name, which may be misspelt; "" for any other field."""
    path, index = _parsed(field)
    items = value_at(body, path[:-1]) if path[-1:] == ("name",) and index is not None else None
    names = [item["name"] for number, item in enumerate(items) if number != index] if isinstance(items, list) else []
    return f", next to {', '.join(names)}" if names else ""


def _parsed(field: str) -> tuple[Path, int | None]:
    """Return the names in a field path, and its first index."""
    steps = _STEP.findall(field)
    indices = [int(index) for index, _key, _name in steps if index]
    return tuple(key or name for _index, key, name in steps if key or name), indices[0] if indices else None
