# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the option definition to the object that the other options are laid over. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ..._client.errors import BadArgument
from ...kubevirt_api import names
from ..kinds import MODULES, Kind
from . import shape

_SERVER_METADATA = ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid")

Object = dict[str, Any]


def object_from(definition: Mapping[str, Any], api_version: str, kind: Kind) -> Object:
    """Return a definition as an object of the kind, with metadata. Raises BadArgument for another kind or shape."""
    if definition.get("kind", kind.name) != kind.name:
        other = MODULES.get(str(definition["kind"]))
        hint = f", and {other} for that" if other else ""
        raise BadArgument(f"definition: kind is {definition['kind']!r}; this module is for {kind.name}{hint}")
    group = str(definition.get("apiVersion", api_version)).partition("/")[0]
    if group != kind.group:
        where = "definition: apiVersion" if "apiVersion" in definition else "api_version:"
        raise BadArgument(f"{where} {definition.get('apiVersion', api_version)!r} is not of the group {kind.group}")
    shape.check("definition", definition)
    obj = copy.deepcopy({key: value for key, value in definition.items() if key != "status"})
    obj["apiVersion"], obj["kind"] = api_version, kind.name
    metadata = obj.get("metadata") or {}
    obj["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVER_METADATA}
    for option in ("labels", "annotations"):
        if obj["metadata"].get(option):
            texts = shape.texts(f"definition: metadata.{option}", obj["metadata"][option])
            obj["metadata"][option] = {key: text for key, text in texts.items() if key != names.DECLARED_ITEMS}
    return obj
