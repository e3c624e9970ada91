# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors: matching, and the form in queries. Admission validates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from controlplane.api.objects.meta import Node
from controlplane.api.schema.bounds import LabelMap, bounded, one_of

IN, NOT_IN, EXISTS, DOES_NOT_EXIST = "In", "NotIn", "Exists", "DoesNotExist"
WITH_VALUES = frozenset({IN, NOT_IN})

LabelValue = Annotated[str, bounded(max_length=63)]


class LabelSelectorRequirement(Node, frozen=True, kw_only=True):
    """What one label must be."""

    key: Annotated[str, bounded(max_length=317, required=True)]
    """The label."""
    operator: Annotated[str, one_of(IN, NOT_IN, EXISTS, DOES_NOT_EXIST, required=True)]
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[LabelValue, ...], bounded(max_items=256)] = ()
    """With In and NotIn: the values that are meant. Without the label, NotIn is met."""


class LabelSelector(Node, frozen=True, kw_only=True):
    """Which labels an object must have. All of it must be met."""

    match_labels: LabelMap = msgspec.field(default_factory=dict)
    """Labels with their values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], bounded(max_items=256)] = ()
    """Further requirements."""


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Tell whether a selector matches labels. An empty one matches everything, an unknown operator nothing."""
    return matcher(selector)(labels)


def matcher(selector: LabelSelector) -> Callable[[Mapping[str, str]], bool]:
    """Return `matches` for one selector. For many objects: the selector's values become sets once."""
    requirements = [(requirement, frozenset(requirement.values)) for requirement in selector.match_expressions]

    def is_met(labels: Mapping[str, str]) -> bool:
        if any(labels.get(name) != value for name, value in selector.match_labels.items()):
            return False
        return all(_is_met(requirement, values, labels) for requirement, values in requirements)

    return is_met


def render(selector: LabelSelector) -> str:
    """Render a selector for a query, e.g. app=web,tier in (a,b),!old."""
    parts = [(name, f"{name}={value}") for name, value in selector.match_labels.items()]
    parts += [(requirement.key, _render(requirement)) for requirement in selector.match_expressions]
    return ",".join(text for _unused, text in sorted(parts))


def _is_met(requirement: LabelSelectorRequirement, values: frozenset[str], labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return requirement.key in labels and labels[requirement.key] in values
        case "NotIn":
            return requirement.key not in labels or labels[requirement.key] not in values
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels
    return False


def _render(requirement: LabelSelectorRequirement) -> str:
    if requirement.operator not in WITH_VALUES:
        return requirement.key if requirement.operator == EXISTS else f"!{requirement.key}"
    return f"{requirement.key} {requirement.operator.lower()} ({','.join(sorted(requirement.values))})"
