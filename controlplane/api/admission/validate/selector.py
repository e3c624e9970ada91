# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about a label selector and the template's labels. virt-controller checks them again before it acts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controlplane.api.admission.problem import Problem, below
from controlplane.api.admission.validate.metadata import check_labels
from controlplane.api.objects.selector import WITH_VALUES, LabelSelector, matches

MAX_VALUES = 1000
"""Limit of all values of a selector. Each reconcile matches instances against them."""


def check_selector(
    selector: LabelSelector, labels: Mapping[str, str], path: str, labels_path: str
) -> Iterator[Problem]:
    """Check a selector, which must not be empty, and that it selects the template's labels."""
    if not selector.match_labels and not selector.match_expressions:
        text = "is empty and would select everything in the namespace; set matchLabels to labels of the template"
        yield Problem(path, text, "FieldValueRequired")
        return
    count = sum(len(expression.values) for expression in selector.match_expressions)
    if count > MAX_VALUES:
        text = f"has {count} values, at most {MAX_VALUES} are allowed; select by fewer labels, or by one of your own"
        yield Problem(below(path, "matchExpressions"), text)
        return
    problems = [*check_parts(selector, path)]
    yield from problems
    if not problems and not (labels and matches(selector, labels)):
        text = f"selector does not match labels of the template; give {labels_path} the labels that it asks for"
        yield Problem(path, text)


def check_parts(selector: LabelSelector, path: str) -> Iterator[Problem]:
    """Check each requirement of a selector, which may be empty."""
    yield from check_labels(selector.match_labels, below(path, "matchLabels"))
    for index, expression in enumerate(selector.match_expressions):
        here = below(below(path, "matchExpressions"), index)
        for value in expression.values or ("",):
            yield from check_labels({expression.key: value}, here)
        if (expression.operator in WITH_VALUES) != bool(expression.values):
            needs = "needs at least one value" if expression.operator in WITH_VALUES else "takes no values; remove them"
            yield Problem(below(here, "values"), f"{expression.operator} {needs}")
