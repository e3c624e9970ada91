# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The front door: is this object right? Of any kind; for admission and for controllers alike.

Problems of single fields come first. Rules over several fields run whenever the object can be read at all, and are
left out where a field below or above them is already reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import Struct

from controlplane.api.admission import fields
from controlplane.api.admission.kinds import vmi as instance
from controlplane.api.admission.problem import Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.prune import without
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Object
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.schema.shape import part

T = TypeVar("T", bound=Struct)
ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def check_object(obj: Json, configuration: KubeVirtConfiguration, *, kind: type[Object], rules: Rules) -> list[Problem]:
    """Return what is wrong with the spec of an object, and with what stands beside it."""
    spec_type, is_required = part(kind, "spec")
    plain = obj.get("spec")
    if plain is None and not is_required:
        plain = {}
    found = [*_root(obj), *fields.check(plain, spec_type, "spec")]
    spec = _readable(plain, spec_type, found)
    more = [] if spec is None else rules.spec(spec, configuration)
    return _merge(found, [*rules.plain_spec(plain), *more])


def check_instance(vmi: Json, configuration: KubeVirtConfiguration) -> list[Problem]:
    """Return what is wrong with the spec of a VirtualMachineInstance: for virt-controller, before it acts."""
    return check_object(vmi, configuration, kind=VirtualMachineInstance, rules=instance.RULES)


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


def _merge(found: list[Problem], rules: list[Problem]) -> list[Problem]:
    """Join both, without rules that only repeat what is already said about the same field, or one inside it."""
    reported = [problem.path for problem in found]
    fresh = [rule for rule in rules if not any(_same_place(rule.path, path) for path in reported)]
    return [*found, *fresh]


def _same_place(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long == short or (long.startswith(short) and long[len(short)] in ".[")
