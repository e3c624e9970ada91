# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options to a VirtualMachine, or another kind that describes machines. Pure.

Order: the definition, then spec over its template, then the options of single fields. None stays in a declaration: it
removes the field from the live object. definition.py and option_volumes.py hold what few tasks need.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..._client.errors import BadArgument
from ...kubevirt_api import names
from ..field_path import Path, nested, value_at, with_value
from ..kinds import POOL, VM, VMI, Kind
from ..merge import overlay
from ..merge.keyed_lists import key_of
from . import shape

SIZE_LIMIT = 1 << 20
"""Bytes of JSON. The API server stores no larger object."""

Object = dict[str, Any]


def _from_volume(option: str) -> Callable[[Any], Any]:
    def fragment(option_value: Any) -> Any:
        from . import option_volumes

        return [option_volumes.volume(option, option_value)]

    return fragment


def _number(option: str) -> Callable[[Any], Any]:
    def annotation(number: int) -> Any:
        if number < 0:
            raise BadArgument(f"{option} is {number}; it must be 0 or more")
        return str(number)

    return annotation


OPTIONS: dict[str, tuple[Path, Callable[[Any], Any] | None]] = {
    "spec": (shape.MACHINE, None),
    "cpu": ((*shape.DOMAIN, "cpu"), lambda cpu: {key: value for key, value in cpu.items() if value is not None}),
    "memory": ((*shape.DOMAIN, "memory", "guest"), None),
    "disks": (shape.DISKS, None),
    "interfaces": ((*shape.DEVICES, "interfaces"), None),
    "volumes": (shape.VOLUMES, None),
    "networks": ((*shape.MACHINE, "networks"), None),
    "data_volume_templates": (("spec", "dataVolumeTemplates"), None),
    "instancetype": (("spec", "instancetype"), None),
    "preference": (("spec", "preference"), None),
    "image": (shape.VOLUMES, _from_volume("image")),
    "cloud_init": (shape.VOLUMES, _from_volume("cloud_init")),
    "eviction_strategy": ((*shape.MACHINE, "evictionStrategy"), None),
    "further_attempts": ((*shape.ANNOTATIONS, names.FURTHER_ATTEMPTS), _number("further_attempts")),
    "run_timeout": ((*shape.ANNOTATIONS, names.RUN_TIMEOUT), _number("run_timeout")),
}
"""The options that describe a machine, in the order in which their fragments are merged. For each option: the path of
the fragment in a VirtualMachine, and the function from the option's value to the fragment (None: it is the value)."""


def has_machine(params: Mapping[str, Any]) -> bool:
    """Tell whether the options describe the machine, not only its name, labels or power state."""
    definition = params.get("definition") or {}
    return bool(definition.get("spec")) or any(params.get(name) for name in OPTIONS)


class Declaration:
    """The object that options declare.

    default_disks: names of disks that no option declares and a volume needs. A live disk of that name is as good.
    """

    def __init__(self, obj: Object, default_disks: frozenset[str]) -> None:
        self.obj = obj
        self.default_disks = default_disks


def build(params: Mapping[str, Any], kind: Kind = VM) -> Declaration:
    """Return the declaration of the options. BadArgument names the option and the field that cannot be used."""
    obj = _from_definition(params.get("definition"), params.get("api_version") or kind.api_version, kind)
    _set_name(obj["metadata"], params)
    for option, path, value in _machine(params, kind):
        shape.check(option, value, path)
        obj = shape.lay(obj, nested(path, value), option)
    default_disks: frozenset[str] = frozenset()
    if params.get("image") or params.get("cloud_init"):
        from . import option_volumes

        option_volumes.check(obj, params, kind)
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


def over_live(declaration: Declaration, declared: Object, live: Object, kind: Kind = VM) -> Object:
    """Return the live object with the declared one laid over it. declared: all or a part of the declaration."""
    laid: Object = overlay.over_live(live, declared)
    if not declaration.default_disks:
        return laid
    from . import option_volumes

    return option_volumes.completed(laid, live, declaration.default_disks, kind)


def unused_volumes(declared: Object, obj: Object, kind: Kind = VM) -> list[str]:
    """Return the names of declared volumes of an object that none of its disks and file systems uses."""
    path = kind.inside(shape.VOLUMES)
    names = [key_of(path, volume) for volume in value_at(declared, path) or () if not overlay.removes(volume, path)]
    devices = value_at(obj, kind.inside(shape.DEVICES)) or {}
    used = {item.get("name") for key in ("disks", "filesystems") for item in devices.get(key) or ()}
    return [name for name in names if name is not None and name not in used]


def without_defaults(declaration: Declaration, live: Object, kind: Kind = VM) -> Object:
    """Return the declared object without default disks that the live object already has."""
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
    """Return option, path and value of each fragment of the machine, in the order of the merge."""
    fragments = []
    for option, (path, make) in OPTIONS.items():
        value = params.get(option)
        if value not in (None, "", [], {}):
            fragments.append((option, path, make(value) if make else value))
    if params.get("start_paused") and kind is VMI:
        fragments.append(("start_paused", shape.MACHINE, {"startStrategy": "Paused"}))
    return [(option, kind.inside(path), value) for option, path, value in fragments if value]
