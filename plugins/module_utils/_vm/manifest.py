# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options to a VirtualMachine, or another kind that describes machines. Pure.

Order: definition, then spec over its template, then the options with a name of their own. None stays: it takes away
what is there. How one lies over the other is in overlay.py, what shape they must have in shape.py; what few tasks give
is read in definition.py and option_volumes.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._client.errors import BadArgument
from ..kubevirt_api import names
from . import overlay, shape
from .cluster import POOL, VM, VMI, Kind
from .keyed_lists import Path, key_of

SIZE_LIMIT = 1 << 20
"""Bytes of JSON; the API server stores no larger object."""
_MACHINE_OPTIONS = (
    "spec", "cpu", "memory", "image", "cloud_init", "disks", "volumes", "interfaces", "networks", "instancetype",
    "preference", "data_volume_templates", "eviction_strategy", "further_attempts", "run_timeout",
)  # fmt: skip

Object = dict[str, Any]


def has_machine(params: Mapping[str, Any]) -> bool:
    """Tell whether the options say what the machine is, and not only how it is called or whether it runs."""
    definition = params.get("definition") or {}
    return bool(definition.get("spec")) or any(params.get(name) for name in _MACHINE_OPTIONS)


class Declared:
    """The object that options declare, whatever its kind.

    default_disks: those in it that nobody asked for, but that a volume needs; one that is there already is as good.
    """

    def __init__(self, vm: Object, default_disks: frozenset[str]) -> None:
        self.vm = vm
        self.default_disks = default_disks


def build(params: Mapping[str, Any], kind: Kind = VM) -> Declared:
    """Return what the options declare; BadArgument names the option and the field that cannot be used."""
    vm = _begun(params.get("definition"), params.get("api_version") or kind.api_version, kind)
    _name(vm["metadata"], params)
    for option, at, value in _machine(params, kind):
        shape.check(option, value, at)
        vm = laid(vm, below(at, value), option)
    default_disks: frozenset[str] = frozenset()
    if params.get("image") or params.get("cloud_init"):
        from . import option_volumes

        vm, default_disks = option_volumes.with_disks(vm, params, kind)
    vm = _labelled(vm, params, kind)
    if has_machine(params):
        vm = laid(vm, below(kind.inside(shape.DEVICES), {}), "definition")
    if kind.vm is not None:
        vm = _with_run_strategy(vm, (*kind.vm, "spec"), params)
    if kind.members:
        given = {key: params[key] for key in ("replicas", "paused", "selector") if params.get(key) is not None}
        vm = replaced(vm, ("spec",), {**(vm.get("spec") or {}), **given}) if given else vm
    if kind is POOL:
        from . import pool  # has options of its own

        vm = pool.declared(vm, params)
    if len(json.dumps(vm, default=str)) > SIZE_LIMIT:
        raise BadArgument("the definition expands beyond 1 MiB, more than the API server stores")
    return Declared(vm, default_disks)


def without_defaults(declared: Declared, live: Object, kind: Kind = VM) -> Object:
    """Return the declaration without the default disks that are there, in whatever form."""
    path = kind.inside(shape.DISKS)
    needless = declared.default_disks & {key_of(path, disk) for disk in at(live, path) or ()}
    if not needless:
        return declared.vm
    disks = [disk for disk in at(declared.vm, path) if disk["name"] not in needless]
    return replaced(declared.vm, path, disks)


def at(obj: Any, path: Path) -> Any:
    """Return what is at a path, None if nothing is."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def replaced(obj: Object, path: Path, value: Any) -> Object:
    """Return a copy with another value at a path; what leads there is made where it is missing."""
    return {**obj, path[0]: replaced(obj.get(path[0]) or {}, path[1:], value) if len(path) > 1 else value}


def below(path: Path, value: Any) -> Any:
    """Return an object that has nothing but a value, at a path."""
    for step in reversed(path):
        value = {step: value}
    return value


def laid(vm: Object, fragment: Object, option: str) -> Object:
    """Return a declaration with what an option says laid over it; BadArgument where that cannot be."""
    try:
        merged: Object = overlay.over_declared(vm, fragment)
    except overlay.Mismatch as wrong:
        raise BadArgument(
            f"{option} cannot be laid over {wrong}, which is {shape.kind_of(wrong.below)}: a mapping is needed there;"
            f" write one, or leave {wrong.path[-1]} out and let the option say it"
        ) from wrong
    return merged


def _begun(given: Mapping[str, Any] | None, api_version: str, kind: Kind) -> Object:
    if not given and api_version == kind.api_version:
        return {"apiVersion": api_version, "kind": kind.name, "metadata": {}}
    from . import definition  # options alone are what most tasks have

    return definition.begun(given or {}, api_version, kind)


def _name(metadata: dict[str, Any], params: Mapping[str, Any]) -> None:
    for option, key in (("name", "name"), ("namespace", "namespace"), ("generate_name", "generateName")):
        given, inside = params.get(option), metadata.get(key)
        if given and inside and given != inside:
            raise BadArgument(
                f"{option} is {given!r}, but metadata.{key} of the definition is {inside!r}; leave one out"
            )
        if given:
            metadata[key] = given
    if metadata.get("name"):
        metadata.pop("generateName", None)


def _with_run_strategy(vm: Object, path: Path, params: Mapping[str, Any]) -> Object:
    spec = dict(at(vm, path) or {})
    _run_strategy(spec, params)
    return replaced(vm, path, spec) if spec else vm


def _run_strategy(spec: dict[str, Any], params: Mapping[str, Any]) -> None:
    if params.get("running") is not None:
        spec["runStrategy"] = "Always" if params["running"] else "Halted"
    elif params.get("run_strategy") is not None:
        spec["runStrategy"] = params["run_strategy"]
    else:
        if spec.get("running") is not None and spec.get("runStrategy") is not None:
            raise BadArgument("definition: spec.running and spec.runStrategy exclude one another; leave out running")
        return
    spec.pop("running", None)


def _labelled(vm: Object, params: Mapping[str, Any], kind: Kind) -> Object:
    for option in ("labels", "annotations"):
        if params.get(option):
            metadata = {"metadata": {option: shape.texts(option, params[option])}}
            vm = laid(vm, metadata, option)
            for template in kind.templates if has_machine(params) else ():
                vm = laid(vm, below(template, metadata), option)
    return vm


def _machine(params: Mapping[str, Any], kind: Kind) -> list[tuple[str, Path, Any]]:
    """Return what each option declares of the machine, and where, in the order in which one lies over the other."""
    cpu = {key: value for key, value in (params.get("cpu") or {}).items() if value is not None}  # None: not given
    found = [
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
        from . import option_volumes  # tables of devices are for those who let an option make one

        found += option_volumes.volumes(params)
    if params.get("eviction_strategy"):
        found.append(("eviction_strategy", shape.MACHINE, {"evictionStrategy": params["eviction_strategy"]}))
    for option, name in (("further_attempts", names.FURTHER_ATTEMPTS), ("run_timeout", names.RUN_TIMEOUT)):
        if params.get(option) is not None:
            found.append((option, shape.ANNOTATIONS, {name: str(_count(option, params[option]))}))
    if params.get("start_paused") and kind is VMI:
        found.append(("start_paused", shape.MACHINE, {"startStrategy": "Paused"}))
    return [(option, kind.inside(path), value) for option, path, value in found if value]


def _count(option: str, value: int) -> int:
    if value < 0:
        raise BadArgument(f"{option} is {value}; it is to be 0 or more")
    return value
