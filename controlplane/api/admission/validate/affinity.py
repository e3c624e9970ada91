# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about affinity: what Kubernetes would refuse later, in the Pod, where the user does not see the error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from controlplane.api.admission import fields
from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.metadata import check_labels
from controlplane.api.admission.validate.selector import check_parts
from controlplane.api.objects.affinity import (
    GREATER,
    LESS,
    Affinity,
    NodeAffinity,
    NodeRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodTerm,
)
from controlplane.api.objects.decode import decode
from controlplane.api.objects.selector import WITH_VALUES

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NUMBERS = frozenset({GREATER, LESS})
_FIELD = "metadata.name"
"""The only field of a node that Kubernetes can select by."""


def check_affinity(affinity: dict[str, Any] | None, path: str) -> Iterator[Problem]:
    """Check each term. Rules over several fields run only when every single field is valid."""
    if affinity is None:
        return
    problems = fields.check(affinity, Affinity, path)
    yield from problems
    if problems:
        return
    read = decode(affinity, Affinity)
    if read.node_affinity is not None:
        yield from _nodes(read.node_affinity, below(path, "nodeAffinity"))
    for name, pods in (("podAffinity", read.pod_affinity), ("podAntiAffinity", read.pod_anti_affinity)):
        if pods is not None:
            yield from _pods(pods, below(path, name))


def _nodes(affinity: NodeAffinity, path: str) -> Iterator[Problem]:
    required = affinity.required_during_scheduling_ignored_during_execution
    if required is not None:
        where = below(below(path, _REQUIRED), "nodeSelectorTerms")
        if not required.node_selector_terms:
            yield Problem(where, "must have at least one term; add one, or remove the rule", "FieldValueRequired")
        for index, term in enumerate(required.node_selector_terms):
            yield from _term(term, below(where, index))
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield from _term(preferred.preference, below(below(below(path, _PREFERRED), index), "preference"))


def _term(term: NodeSelectorTerm, path: str) -> Iterator[Problem]:
    for index, requirement in enumerate(term.match_expressions):
        yield from check_requirement(requirement, below(below(path, "matchExpressions"), index))
    for index, requirement in enumerate(term.match_fields):
        here = below(below(path, "matchFields"), index)
        if requirement.key != _FIELD:
            text = f"{excerpt(requirement.key)} is not supported in matchFields; use {_FIELD}"
            yield Problem(below(here, "key"), text, "FieldValueNotSupported")
        if requirement.operator not in WITH_VALUES:
            yield Problem(below(here, "operator"), f"must be {' or '.join(sorted(WITH_VALUES))}")
        elif len(requirement.values) != 1:
            yield Problem(below(here, "values"), "must be exactly one name of a node")


def check_requirement(requirement: NodeRequirement, path: str) -> Iterator[Problem]:
    """Check one requirement on a node's labels."""
    needs_values = requirement.operator in WITH_VALUES
    for value in (requirement.values if needs_values else ()) or ("",):
        yield from check_labels({requirement.key: value}, path)
    if requirement.operator in _NUMBERS:
        if len(requirement.values) != 1 or not _is_whole(requirement.values[0]):
            yield Problem(below(path, "values"), f'{requirement.operator} needs exactly one whole number, e.g. ["8"]')
    elif needs_values != bool(requirement.values):
        needs = "needs at least one value" if needs_values else "takes no values; remove them"
        yield Problem(below(path, "values"), f"{requirement.operator} {needs}")


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()


def _pods(affinity: PodAffinity, path: str) -> Iterator[Problem]:
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _pod_term(term, below(below(path, _REQUIRED), index))
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        yield from _pod_term(
            preferred.pod_affinity_term, below(below(below(path, _PREFERRED), index), "podAffinityTerm")
        )


def _pod_term(term: PodTerm, path: str) -> Iterator[Problem]:
    yield from _keys([term.topology_key], below(path, "topologyKey"))
    for name, selector in (("labelSelector", term.label_selector), ("namespaceSelector", term.namespace_selector)):
        if selector is not None:
            yield from check_parts(selector, below(path, name))
    for name, keys in (("matchLabelKeys", term.match_label_keys), ("mismatchLabelKeys", term.mismatch_label_keys)):
        yield from _keys(keys, below(path, name))
        if keys and term.label_selector is None:
            yield Problem(below(path, name), "needs a labelSelector; add one, or remove the keys")
    both = sorted({*term.match_label_keys} & {*term.mismatch_label_keys})
    if both:
        text = f"has {excerpt(both[0])}, which is in matchLabelKeys, too; remove one"
        yield Problem(below(path, "mismatchLabelKeys"), text)


def _keys(keys: Iterable[str], path: str) -> Iterator[Problem]:
    yield from check_labels(dict.fromkeys(keys, ""), path)
