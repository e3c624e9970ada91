# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Valid affinity; malformed affinity is in the corpus."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.affinity import check_affinity
from tests.controlplane.api.corpus import HOST, PREFERRED, REQUIRED, asked, named

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
        {"nodeAffinity": {REQUIRED: asked("zone", "In", "a", "b", "")}},
        {"nodeAffinity": {REQUIRED: asked("example.com/zone", "DoesNotExist")}},
        {"nodeAffinity": {REQUIRED: asked("cores", "Gt", "-8")}},
        {"nodeAffinity": {REQUIRED: named("metadata.name", "NotIn", "node-1.example.com")}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}},
        {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": {}}]}},
        {"podAffinity": {REQUIRED: PODS}, "podAntiAffinity": {REQUIRED: PODS}},
        {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": pod} for pod in PODS]}},
    ],
)
def test_affinity_that_kubernetes_accepts_is_accepted(affinity: Any) -> None:
    assert list(check_affinity(affinity, "spec.affinity")) == []


def test_every_malformed_term_is_named() -> None:
    terms = [*asked("a b", "Exists")["nodeSelectorTerms"], *asked("zone", "In")["nodeSelectorTerms"]]
    wrong = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}},
        "podAffinity": {REQUIRED: [{"topologyKey": "a b"}]},
    }

    assert [item.path for item in check_affinity(wrong, "spec.affinity")] == [
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0][a b]",
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0].values",
        f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey[a b]",
    ]
