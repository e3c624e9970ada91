# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options to a VirtualMachine, or another kind that describes machines. Pure.

Order: the definition, then spec over its template, then the options of single fields. None stays in a declaration: it
removes the field from the live object. definition.py and option_volumes.py hold what few tasks need.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..._client.errors import BadArgument
from ...kubevirt_api import names
from ..field_path import Path, nested, value_at, with_value
from ..kinds import POOL, VM, VMI, Kind
from ..merge.keyed_lists import key_of
from . import shape

SIZE_LIMIT = 1 << 20
"""Bytes of JSON; the API server stores no larger object."""
_MACHINE_OPTIONS = (
    "spec", "cpu", "memory", "image", "cloud_init", "disks", "volumes", "interfaces", "networks", "instancetype",
    "preference", "data_volume_templates", "eviction_strategy", "further_attempts", "run_timeout",
)  # fmt: skip

Object = dict[str, Any]


def has_machine(params: Mapping[str, Any]) -> bool:
    """Tell whether the options describe the machine, not only its name, labels or power state."""
    definition = params.get("definition") or {}
    return bool(definition.get("spec")) or any(params.get(name) for name in _MACHINE_OPTIONS)


class Declaration:
    """The object that options declare.

    default_disks: names of disks that no option declares and a volume needs. A live disk of that name is as good.
    """

    def __init__(self, obj: Object, default_disks: frozenset[str]) -> None:
        self.obj = obj
        self.default_disks = default_disks


def build(params: Mapping[str, Any], kind: Kind = VM) -> Declaration:
    """Return what the options declare; BadArgument names the option and the field that cannot be used."""
    obj = _from_definition(params.get("definition"), params.get("api_version") or kind.api_version, kind)
    _set_name(obj["metadata"], params)
    for option, path, value in _machine(params, kind):
        shape.check(option, value, path)
        obj = shape.lay(obj, nested(path, value), option)
    default_disks: frozenset[str] = frozenset()
    if params.get("image") or params.get("cloud_init"):
        from . import option_volumes

        obj, default_disks = option_volumes.with_disks(obj, params, kind)
    obj = _with_labels(obj, params, kind)
    if has_machine(params):
        obj = shape.lay(obj, nested(kind.inside(shape.DEVICES), {}), "definition")
    if kind.vm is not None:
        obj = _with_run_strategy(obj, (*kind.vm, "spec"), params)
    if kind.members:
        fields = {key: params[key] for key in ("replicas", "paused", "selector") if params.get(key) is not None}
        obj = with_value(obj, ("spec",), {**(obj.get("spec") or {}), **fields}) if fields else obj
    if kind is POOL:
        from . import pool_options

        obj = pool_options.with_options(obj, params)
    if len(json.dumps(obj, default=str)) > SIZE_LIMIT:
        raise BadArgument("the definition expands beyond 1 MiB, more than the API server stores")
    return Declaration(obj, default_disks)


def without_defaults(declaration: Declaration, live: Object, kind: Kind = VM) -> Object:
    """Return the declared object without the default disks that the live object has already."""
    path = kind.inside(shape.DISKS)
    present = declaration.default_disks & {key_of(path, disk) for disk in value_at(live, path) or ()}
    if not present:
        return declaration.obj
    disks = [disk for disk in value_at(declaration.obj, path) if disk["name"] not in present]
    return with_value(declaration.obj, path, disks)


def _from_definition(definition: Mapping[str, Any] | None, api_version: str, kind: Kind) -> Object:
    if not definition and api_version == kind.api_version:
        return {"apiVersion": api_version, "kind": kind.name, "metadata": {}}
    from .definition import object_from

    return object_from(definition or {}, api_version, kind)


def _set_name(metadata: dict[str, Any], params: Mapping[str, Any]) -> None:
    for option, key in (("name", "name"), ("namespace", "namespace"), ("generate_name", "generateName")):
        value, defined = params.get(option), metadata.get(key)
        if value and defined and value != defined:
            raise BadArgument(
                f"{option} is {value!r}, but metadata.{key} of the definition is {defined!r}; leave one out"
            )
        if value:
            metadata[key] = value
    if metadata.get("name"):
        metadata.pop("generateName", None)


def _with_run_strategy(obj: Object, path: Path, params: Mapping[str, Any]) -> Object:
    spec = dict(value_at(obj, path) or {})
    _set_run_strategy(spec, params)
    return with_value(obj, path, spec) if spec else obj


def _set_run_strategy(spec: dict[str, Any], params: Mapping[str, Any]) -> None:
    if params.get("running") is not None:
        spec["runStrategy"] = "Always" if params["running"] else "Halted"
    elif params.get("run_strategy") is not None:
        spec["runStrategy"] = params["run_strategy"]
    else:
        if spec.get("running") is not None and spec.get("runStrategy") is not None:
            raise BadArgument("definition: spec.running and spec.runStrategy exclude one another; leave out running")
        return
    spec.pop("running", None)


def _with_labels(obj: Object, params: Mapping[str, Any], kind: Kind) -> Object:
    for option in ("labels", "annotations"):
        if params.get(option):
            metadata = {"metadata": {option: shape.texts(option, params[option])}}
            obj = shape.lay(obj, metadata, option)
            for template in kind.templates if has_machine(params) else ():
                obj = shape.lay(obj, nested(template, metadata), option)
    return obj


def _machine(params: Mapping[str, Any], kind: Kind) -> list[tuple[str, Path, Any]]:
    """Return option, path and value of each fragment of the machine, in the order in which they are laid."""
    cpu = {key: value for key, value in (params.get("cpu") or {}).items() if value is not None}  # None: not given
    fragments = [
        ("spec", shape.MACHINE, params.get("spec")),
        ("cpu", (*shape.DOMAIN, "cpu"), cpu),
        ("memory", (*shape.DOMAIN, "memory"), {"guest": params["memory"]} if params.get("memory") else None),
        ("disks", shape.DISKS, params.get("disks")),
        ("interfaces", (*shape.DEVICES, "interfaces"), params.get("interfaces")),
        ("volumes", shape.VOLUMES, params.get("volumes")),
        ("networks", (*shape.MACHINE, "networks"), params.get("networks")),
        ("data_volume_templates", ("spec", "dataVolumeTemplates"), params.get("data_volume_templates")),
        ("instancetype", ("spec", "instancetype"), params.get("instancetype")),
        ("preference", ("spec", "preference"), params.get("preference")),
    ]
    if params.get("image") or params.get("cloud_init"):
        from . import option_volumes

        fragments += option_volumes.volumes(params)
    if params.get("eviction_strategy"):
        fragments.append(("eviction_strategy", shape.MACHINE, {"evictionStrategy": params["eviction_strategy"]}))
    for option, name in (("further_attempts", names.FURTHER_ATTEMPTS), ("run_timeout", names.RUN_TIMEOUT)):
        if params.get(option) is not None:
            fragments.append((option, shape.ANNOTATIONS, {name: str(_count(option, params[option]))}))
    if params.get("start_paused") and kind is VMI:
        fragments.append(("start_paused", shape.MACHINE, {"startStrategy": "Paused"}))
    return [(option, kind.inside(path), value) for option, path, value in fragments if value]


def _count(option: str, value: int) -> int:
    if value < 0:
        raise BadArgument(f"{option} is {value}; it must be 0 or more")
    return value
