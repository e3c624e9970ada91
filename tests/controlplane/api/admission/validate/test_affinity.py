# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Affinity as Kubernetes accepts it, and malformed affinity."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.affinity import check_affinity
from tests.controlplane.api.admission.malformed import assert_refused, each, row

REQUIRED, PREFERRED = (f"{rule}DuringSchedulingIgnoredDuringExecution" for rule in ("required", "preferred"))
NODES = f"affinity/nodeAffinity/{REQUIRED}"
BETTER_NODES = f"affinity/nodeAffinity/{PREFERRED}"
AWAY = f"affinity/podAntiAffinity/{REQUIRED}"
HOST = {"topologyKey": "kubernetes.io/hostname"}


def a_term(rule: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """Return a node requirement with one term."""
    return {"nodeSelectorTerms": [{rule: [*parts]}]}


def on_label(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement on one label of a node."""
    return a_term("matchExpressions", {"key": key, "operator": operator, **({"values": [*values]} if values else {})})


def on_field(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement on one field of a node."""
    return a_term("matchFields", {"key": key, "operator": operator, **({"values": [*values]} if values else {})})


def deep(levels: int) -> Any:
    """Nest objects."""
    return {"a": deep(levels - 1)} if levels else {}


PODS: list[Any] = [
    HOST,
    {**HOST, "labelSelector": {}, "namespaces": ["a"], "namespaceSelector": {}},
    {
        **HOST,
        "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
    },
    {**HOST, "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["example.com/b"]},
]


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"nodeAffinity": None, "podAffinity": {}, "podAntiAffinity": {}},
        {"nodeAffinity": {REQUIRED: on_label("zone", "In", "a", "b", "")}},
        {"nodeAffinity": {REQUIRED: on_label("example.com/zone", "DoesNotExist")}},
        {"nodeAffinity": {REQUIRED: on_label("cores", "Gt", "-8")}},
        {"nodeAffinity": {REQUIRED: on_field("metadata.name", "NotIn", "node-1.example.com")}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}},
        {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": {}}]}},
        {"podAffinity": {REQUIRED: PODS}, "podAntiAffinity": {REQUIRED: PODS}},
        {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": pod} for pod in PODS]}},
    ],
)
def test_affinity_that_kubernetes_accepts_is_accepted(affinity: Any) -> None:
    assert list(check_affinity(affinity, "spec.affinity")) == []


def test_every_malformed_term_is_on_field() -> None:
    terms = [*on_label("a b", "Exists")["nodeSelectorTerms"], *on_label("zone", "In")["nodeSelectorTerms"]]
    wrong = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}},
        "podAffinity": {REQUIRED: [{"topologyKey": "a b"}]},
    }

    assert [item.path for item in check_affinity(wrong, "spec.affinity")] == [
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0][a b]",
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0].values",
        f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey[a b]",
    ]


MALFORMED = [
    row("no operator", NODES, on_label("zone", ""), "one of In", at="matchExpressions[0].operator"),
    row("misspelt affinity", "affinity/nodeAfinity", {}, "nodeAffinity"),
    row("affinity is a list", "affinity", {"nodeAffinity": []}, "must be an object", at="affinity.nodeAffinity"),
    row("no terms", NODES, {"nodeSelectorTerms": []}, "at least one term", at="nodeSelectorTerms"),
    row("misspelt term", NODES, a_term("matchExpresions"), "did you mean matchExpressions", at="matchExpresions"),
    row("unknown operator", NODES, on_label("zone", "Is", "a"), "allowed: In, NotIn", at="[0].operator"),
    row(
        "expression without an operator", NODES, a_term("matchExpressions", {"key": "a"}), "is required", at="operator"
    ),
    row("malformed label key", NODES, on_label("a b", "Exists"), "not a label key", at="matchExpressions[0][a b]"),
    row("In without values", NODES, on_label("zone", "In"), "at least one value", at="matchExpressions[0].values"),
    row("Exists with values", NODES, on_label("zone", "Exists", "a"), "takes no values", at="[0].values"),
    row("Gt of a word", NODES, on_label("cores", "Gt", "many"), "one whole number", at="matchExpressions[0].values"),
    row("Lt of two values", NODES, on_label("cores", "Lt", "1", "2"), "one whole number", at="[0].values"),
    row("malformed label value", NODES, on_label("zone", "In", "a b"), "label value", at="matchExpressions[0][zone]"),
    row("unsupported field", NODES, on_field("spec.nodeName", "In", "a"), "use metadata.name", at="matchFields[0].key"),
    row("two nodes by name", NODES, on_field("metadata.name", "In", "a", "b"), "exactly one", at="[0].values"),
    row("Exists of a node name", NODES, on_field("metadata.name", "Exists"), "In or NotIn", at="[0].operator"),
    row("a weight of 0", BETTER_NODES, [{"weight": 0, "preference": {}}], "from 1 to 100", at="[0].weight"),
    row("no weight", BETTER_NODES, [{"preference": {}}], "is required", at="[0].weight"),
    row("no preference", BETTER_NODES, [{"weight": 1}], "is required", at="[0].preference"),
    row("an empty topology", AWAY, [{"topologyKey": ""}], "is required", at="[0].topologyKey"),
    row("a topology with a space", AWAY, [{"topologyKey": "a b"}], "not a label key", at="[0].topologyKey[a b]"),
    row("malformed namespace", AWAY, [{**HOST, "namespaces": [".."]}], "DNS label", at="namespaces[0]"),
    row("unknown field of a selector", AWAY, [{**HOST, "labelSelector": {"a": "b"}}], "no such field", at="a"),
    row(
        "a selector with a bad operator",
        AWAY,
        [{**HOST, "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}],
        "allowed: In, NotIn",
        at="namespaceSelector.matchExpressions[0].operator",
    ),
    row(
        "malformed value in a selector",
        AWAY,
        [{**HOST, "labelSelector": {"matchLabels": {"a": "b c"}}}],
        "label value",
        at="labelSelector.matchLabels[a]",
    ),
    row(
        "label keys without a selector",
        AWAY,
        [{**HOST, "matchLabelKeys": ["a"]}],
        "needs a labelSelector",
        at="[0].matchLabelKeys",
    ),
    row(
        "label key that must match and differ",
        AWAY,
        [{**HOST, "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}],
        "in matchLabelKeys, too",
        at="[0].mismatchLabelKeys",
    ),
    row(
        "weight above 100",
        f"affinity/podAffinity/{PREFERRED}",
        [{"weight": 101, "podAffinityTerm": HOST}],
        "from 1 to 100",
        at=f"podAffinity.{PREFERRED}[0].weight",
    ),
    row("deep nesting", "affinity", {"nodeAffinity": deep(70)}, "at most 64 levels"),
]


@each(MALFORMED)
def test_malformed_affinity_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
