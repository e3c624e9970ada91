# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options to a VirtualMachine. Pure.

Order: definition, then spec over its template, then the options with a name of their own; named lists join by name.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from .._client.errors import BadArgument
from ..kubevirt_api import names
from .compare import merged_over

SIZE_LIMIT = 1 << 20
"""Bytes of JSON; the API server stores no larger object."""
KIND = "VirtualMachine"
IMAGE_VOLUME = "containerdisk"
CLOUD_INIT_VOLUME = "cloudinit"
_MACHINE_OPTIONS = (
    "spec", "cpu", "memory", "image", "cloud_init", "disks", "volumes", "interfaces", "networks", "instancetype",
    "preference", "data_volume_templates",
)  # fmt: skip
_OF_THE_SERVER = ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def has_machine(params: Mapping[str, Any]) -> bool:
    """Tell whether the options say what the machine is, and not only how it is called or whether it runs."""
    definition = params.get("definition") or {}
    return bool(definition.get("spec")) or any(params.get(name) for name in _MACHINE_OPTIONS)


def build(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that the options declare."""
    vm = _from_definition(params.get("definition") or {}, params.get("api_version") or names.API_VERSION)
    _name(vm["metadata"], params)
    spec = vm.get("spec") or {}
    template = spec.get("template") or {}
    machine = _machine(template.get("spec") or {}, params)
    for option in ("labels", "annotations"):
        if params.get(option):
            texts = _texts(option, params[option])
            vm["metadata"][option] = {**(vm["metadata"].get(option) or {}), **texts}
            if has_machine(params):
                template["metadata"] = template.get("metadata") or {}
                template["metadata"][option] = {**(template["metadata"].get(option) or {}), **texts}
    if has_machine(params):
        machine.setdefault("domain", {}).setdefault("devices", {})
        template["spec"] = machine
        spec["template"] = template
    _run_strategy(spec, params)
    for option, key in (
        ("instancetype", "instancetype"),
        ("preference", "preference"),
        ("data_volume_templates", "dataVolumeTemplates"),
    ):
        if params.get(option) is not None:
            spec[key] = params[option]
    if spec:
        vm["spec"] = spec
    if len(json.dumps(vm, default=str)) > SIZE_LIMIT:
        raise BadArgument("the definition expands beyond 1 MiB, more than the API server stores")
    return vm


def _from_definition(definition: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    kind = definition.get("kind", KIND)
    if kind != KIND:
        raise BadArgument(f"definition: kind is {kind!r}; this module is for {KIND}")
    group = str(definition.get("apiVersion", api_version)).partition("/")[0]
    if group != names.GROUP:
        raise BadArgument(f"definition: apiVersion {definition.get('apiVersion')!r} is not of the group {names.GROUP}")
    vm = copy.deepcopy({key: value for key, value in definition.items() if key != "status"})
    for key in ("metadata", "spec"):
        if not isinstance(vm.get(key) or {}, dict):
            raise BadArgument(f"definition: {key} is not a mapping")
    vm["apiVersion"], vm["kind"] = api_version, KIND
    metadata = vm.get("metadata") or {}
    vm["metadata"] = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
    for option in ("labels", "annotations"):
        if vm["metadata"].get(option):
            _texts(f"definition: metadata.{option}", vm["metadata"][option])
    return vm


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


def _texts(option: str, values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise BadArgument(f"{option} is not a mapping")
    wrong = [key for key, value in values.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise BadArgument(f"{option}[{wrong[0]}]: the value is not a text; put it into quotation marks")
    return values


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


def _machine(below: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    machine = merged_over(below, params["spec"]) if params.get("spec") else below
    domain = machine.get("domain") or {}
    devices = domain.get("devices") or {}
    if params.get("cpu"):
        domain["cpu"] = merged_over(domain.get("cpu") or {}, params["cpu"])
    if params.get("memory"):
        domain["memory"] = merged_over(domain.get("memory") or {}, {"guest": params["memory"]})
    disks, volumes = list(params.get("disks") or ()), list(params.get("volumes") or ())
    if params.get("image"):
        volumes.append({"name": IMAGE_VOLUME, "containerDisk": {"image": params["image"]}})
        disks.append({"name": IMAGE_VOLUME, "disk": {"bus": "virtio"}})
    if params.get("cloud_init"):
        volumes.append({"name": CLOUD_INIT_VOLUME, **_cloud_init(params["cloud_init"])})
        disks.append({"name": CLOUD_INIT_VOLUME, "disk": {"bus": "virtio"}})
    for section, key, items in (
        (devices, "disks", disks),
        (devices, "interfaces", params.get("interfaces")),
        (machine, "volumes", volumes),
        (machine, "networks", params.get("networks")),
    ):
        if items:
            section[key] = _joined(key, section.get(key) or [], items)
    if devices:
        domain["devices"] = devices
    if domain:
        machine["domain"] = domain
    return machine


def _joined(option: str, below: list[Any], above: list[Any]) -> list[Any]:
    """Lay named items over named items; new ones come after."""
    joined: dict[str, Any] = {}
    for index, item in enumerate([*below, *above]):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise BadArgument(f"{option}[{index}]: an item without a name")
        joined[name] = item
    return list(joined.values())


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
