# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of tests/controlplane/golden/objects; admission accepts each."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Resource

FOLDER = Path(__file__).parents[1] / "golden" / "objects"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def load(name: str) -> dict[str, Any]:
    """Load one manifest; the caller may change it."""
    return copy.deepcopy(_read(name))


SET = VirtualMachineInstanceReplicaSet.resource
KINDS = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, SET)
"""The kinds that contain the spec of a VMI."""


def machine(resource: Resource) -> dict[str, Any]:
    """Return a good object of a kind whose VMI spec has every field."""
    vm = load("vm-full")
    template, base = vm["spec"]["template"], {"apiVersion": "kubevirt.io/v1", "kind": resource.kind}
    if resource == VIRTUAL_MACHINE_INSTANCE:
        return base | {"metadata": vm["metadata"] | template["metadata"], "spec": template["spec"]}
    if resource == SET:
        labels = template["metadata"]["labels"]
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return base | {"metadata": vm["metadata"], "spec": spec}
    return vm


@cache
def _read(name: str) -> dict[str, Any]:
    """Parse each manifest once: hundreds of tests change one field each."""
    manifest: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return manifest


def changed(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with one field set (created where missing), or removed when the value is ..."""
    copied = copy.deepcopy(manifest)
    steps: list[Any] = [int(part) if part.isdigit() else part for part in path.split("/")]
    *holders, last = steps
    here: Any = copied
    for part in holders:
        here = here[part] if isinstance(here, list) else here.setdefault(part, {})
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return copied


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every value in a manifest, as `changed` takes it."""
    inside = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for name, member in inside:
        here = f"{path}/{name}" if path else str(name)
        yield here
        yield from paths(member, here)
