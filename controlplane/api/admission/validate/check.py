# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check an object of any kind, for admission and for controllers.

Problems of single fields come first. Rules over several fields run whenever the object can be decoded. A rule's problem
is dropped when its field, or one above or below it, is reported already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from msgspec import Struct

from controlplane.api.admission import fields
from controlplane.api.admission.kinds import vmi as instance
from controlplane.api.admission.problem import MAX_PROBLEMS, Problem
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.prune import without
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Object
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.schema.shape import part

T = TypeVar("T", bound=Struct)
_CUT = re.compile(r"[.\[]")
ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def check_object(obj: Json, configuration: KubeVirtConfiguration, *, kind: type[Object], rules: Rules) -> list[Problem]:
    """Return the problems of an object's spec and of unknown fields beside it, at most MAX_PROBLEMS."""
    spec_type, is_required = part(kind, "spec")
    plain = obj.get("spec")
    if plain is None and not is_required:
        plain = {}
    problems = [*islice(_root(obj), MAX_PROBLEMS), *fields.check(plain, spec_type, "spec")][:MAX_PROBLEMS]
    if len(problems) == MAX_PROBLEMS:
        return problems
    spec = _readable(rules.fill(plain), spec_type, problems)
    rule_problems = () if spec is None else rules.spec(spec, configuration)
    new = _without_repeats(problems, chain(rules.plain_spec(plain), rule_problems))
    return [*problems, *islice(new, MAX_PROBLEMS - len(problems))]


def check_instance(vmi: Json, configuration: KubeVirtConfiguration) -> list[Problem]:
    """Return the problems of a VirtualMachineInstance's spec. virt-controller calls this before it acts."""
    return check_object(vmi, configuration, kind=VirtualMachineInstance, rules=instance.RULES)


def _readable(spec: Any, kind: type[T], problems: list[Problem]) -> T | None:
    """Decode a spec, if necessary without the fields that have problems. None when that fails, too."""
    try:
        return decode(spec, kind)
    except DecodeError:
        pruned = without(spec, [problem.path.removeprefix("spec.") for problem in problems])
    try:
        return decode(pruned, kind)
    except DecodeError:
        return None


def _root(obj: Json) -> Iterator[Problem]:
    for name in obj:
        if name not in ROOT_FIELDS:
            yield fields.unknown(name, "", sorted(ROOT_FIELDS))


def _without_repeats(problems: list[Problem], rules: Iterable[Problem]) -> Iterator[Problem]:
    """Drop problems of rules whose field, or one above or below it, is reported already.

    With sets: comparing each pair of problems would take seconds.
    """
    reported = {problem.path for problem in problems}
    around = {head for path in reported for head in _heads(path)}
    for rule in rules:
        if rule.path not in around and reported.isdisjoint(_heads(rule.path)):
            yield rule


def _heads(path: str) -> Iterator[str]:
    """Yield a path and its parents: spec, spec.a and spec.a[0] for spec.a[0]."""
    yield path
    for cut in _CUT.finditer(path):
        yield path[: cut.start()]
