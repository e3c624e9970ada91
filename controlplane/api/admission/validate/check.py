# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front doors: is this VirtualMachine, instance or configuration right? For admission and for controllers alike.

Problems of single fields come first. Rules over several fields run whenever the object can be read at all, and are
left out where a field below or above them is already reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from controlplane.api.admission import fields
from controlplane.api.admission.problem import Problem
from controlplane.api.admission.validate.compute import check_compute
from controlplane.api.admission.validate.metadata import check_template_metadata
from controlplane.api.admission.validate.network import check_network
from controlplane.api.admission.validate.placement import check_placement
from controlplane.api.admission.validate.prune import without
from controlplane.api.admission.validate.storage import check_storage
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration, KubeVirtSpec
from controlplane.api.objects.meta import Node
from controlplane.api.objects.vm import VirtualMachineSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec

Json = dict[str, Any]
T = TypeVar("T", bound=Node)
ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def check_vm(vm: Json, configuration: KubeVirtConfiguration) -> list[Problem]:
    """Return what is wrong with the spec of a VirtualMachine."""
    found = [*_root(vm), *fields.check(vm.get("spec"), VirtualMachineSpec, "spec")]
    strategy = list(_strategy(vm.get("spec")))
    spec = _readable(vm.get("spec"), VirtualMachineSpec, found)
    if spec is None:
        return _merge(found, strategy)
    path = "spec.template"
    rules = [
        *strategy,
        *check_template_metadata(spec.template.metadata, f"{path}.metadata"),
        *_instance(spec.template.spec, configuration, f"{path}.spec"),
    ]
    return _merge(found, rules)


def check_instance(vmi: Json, configuration: KubeVirtConfiguration) -> list[Problem]:
    """Return what is wrong with the spec of a VirtualMachineInstance."""
    found = [*_root(vmi), *fields.check(vmi.get("spec"), VirtualMachineInstanceSpec, "spec")]
    spec = _readable(vmi.get("spec"), VirtualMachineInstanceSpec, found)
    if spec is None:
        return found
    return _merge(found, list(_instance(spec, configuration, "spec")))


def check_kubevirt(kubevirt: Json) -> list[Problem]:
    """Return what is wrong with the spec of a KubeVirt."""
    return [*_root(kubevirt), *fields.check(kubevirt.get("spec") or {}, KubeVirtSpec, "spec")]


def _readable(spec: Any, kind: type[T], found: list[Problem]) -> T | None:
    """Read a spec; if need be, without the fields that have a problem of their own. None: not even then."""
    try:
        return decode(spec, kind)
    except DecodeError:
        rest = without(spec, [problem.path.removeprefix("spec.") for problem in found])
    try:
        return decode(rest, kind)
    except DecodeError:
        return None


def _root(obj: Json) -> Iterator[Problem]:
    for name in obj:
        if name not in ROOT_FIELDS:
            yield fields.unknown(name, "", sorted(ROOT_FIELDS))


def _strategy(spec: Any) -> Iterator[Problem]:
    if not isinstance(spec, dict):
        return
    given = [name for name in ("running", "runStrategy") if spec.get(name) not in (None, "")]
    if len(given) == 2:
        yield Problem("spec.running", "running and runStrategy exclude each other; remove running")
    elif not given:
        text = "runStrategy (or the deprecated running) is required; set Always, Halted, Manual, RerunOnFailure or Once"
        yield Problem("spec.runStrategy", text, "FieldValueRequired")


def _instance(spec: VirtualMachineInstanceSpec, configuration: KubeVirtConfiguration, path: str) -> Iterator[Problem]:
    yield from check_compute(spec.domain, configuration, f"{path}.domain")
    yield from check_storage(spec, path)
    yield from check_network(spec, path)
    yield from check_placement(spec, path)


def _merge(found: list[Problem], rules: list[Problem]) -> list[Problem]:
    """Join both, without rules that only repeat what is already said about the same field, or one inside it."""
    reported = [problem.path for problem in found]
    fresh = [rule for rule in rules if not any(_same_place(rule.path, path) for path in reported)]
    return [*found, *fresh]


def _same_place(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or (long.startswith(short) and long[len(short)] in ".[")
