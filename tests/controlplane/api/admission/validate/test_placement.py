# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about node selectors, tolerations, DNS and host name."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.kinds import vm
from controlplane.api.admission.validate.check import check_object
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vm import VirtualMachine
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import assert_refused, each, row

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
REFUSED_SPREADING: list[tuple[str, dict[str, Any], str, str]] = [
    ("no skew", {"maxSkew": 0}, "from 1", ".maxSkew"),
    ("no topology", {"topologyKey": ""}, "required", ".topologyKey"),
    ("malformed topology", {"topologyKey": "a b"}, "label", ".topologyKey[a b]"),
    ("no action", {"whenUnsatisfiable": ""}, "one of DoNotSchedule", ".whenUnsatisfiable"),
    ("unknown action", {"whenUnsatisfiable": "Wait"}, "DoNotSchedule", ".whenUnsatisfiable"),
    ("unknown policy", {"nodeTaintsPolicy": "Wait"}, "Honor", ".nodeTaintsPolicy"),
    ("malformed selector", {"labelSelector": {"matchLabels": {"a b": ""}}}, "label", ".labelSelector.matchLabels[a b]"),
    ("malformed key", {"matchLabelKeys": ["a b"]}, "label", ".matchLabelKeys[a b]"),
    ("keys without selector", {"labelSelector": None, "matchLabelKeys": ["a"]}, "needs", ".matchLabelKeys"),
    ("key in selector", {"matchLabelKeys": ["app"]}, "in labelSelector, too", ".matchLabelKeys"),
    ("domains", {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}, "needs", ".minDomains"),
]
MALFORMED = [
    row("node selector of 64 characters", "nodeSelector", {"a": "b" * 64}, "at most 63", at="nodeSelector[a]"),
    row("DNS policy None without nameservers", "dnsConfig/nameservers", ..., "set them"),
    row("four nameservers", "dnsConfig/nameservers", ["192.0.2.1"] * 4, "at most 3"),
    row("seven search domains", "dnsConfig/searches", ["a"] * 7, "at most 6"),
    row("search domains of 300 characters", "dnsConfig/searches", ["a" * 150, "b" * 150], "at most 256"),
    row("nameserver by name", "dnsConfig/nameservers", ["dns"], "not an IP address", at="dnsConfig.nameservers[0]"),
    row(
        "toleration seconds without an effect",
        "tolerations",
        [{"key": "a", "operator": "Exists", "tolerationSeconds": 60}],
        "needs effect NoExecute",
        at="tolerations[0].effect",
    ),
    row("toleration without key", "tolerations", [{"operator": "Equal"}], "operator is Exists", at="[0].key"),
    row("malformed toleration value", "tolerations", [{"key": "a", "value": "/"}], "is not a label value", at="value"),
    row(
        "a value with Exists",
        "tolerations",
        [{"key": "a", "operator": "Exists", "value": "b"}],
        "must be empty",
        at="[0].value",
    ),
    *(
        row(f"spreading: {name}", "topologySpreadConstraints", [{**SPREAD, **changed}], words, at=at)
        for name, changed, words, at in REFUSED_SPREADING
    ),
    row("spreading: twice", "topologySpreadConstraints", [SPREAD] * 2, "remove one", at="Constraints[1]"),
    row("malformed toleration key", "tolerations", [{"key": "a b"}], "label", at="tolerations[0][a b]"),
    row("DNS option without a name", "dnsConfig/options", [{"value": "2"}], "is required", at="options[0].name"),
    row("host name with a dot", "hostname", "a.b", "DNS label"),
    row("subdomain with a dot, which no Pod can have", "subdomain", "a.b", "DNS label"),
    row("subdomain of 64 characters", "subdomain", "s" * 64, "at most 63"),
]


ANYWAY = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    "constraints",
    [
        [],
        [SPREAD, ANYWAY, {**SPREAD, "topologyKey": "zone"}],
        [{**SPREAD, "minDomains": 2}],
        [{**SPREAD, "matchLabelKeys": ["version"]}],
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    ],
    ids=["none", "different ones", "domains", "keys beside a selector", "no selector"],
)
def test_well_formed_spreading_is_accepted(constraints: list[dict[str, Any]]) -> None:
    good = golden.changed(golden.load("vm-full"), "spec/template/spec/topologySpreadConstraints", constraints)
    assert check_object(good, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES) == []


def test_repeated_spreading_is_a_duplicate() -> None:
    bad = golden.changed(golden.load("vm-full"), "spec/template/spec/topologySpreadConstraints", [SPREAD] * 2)
    problems = check_object(bad, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES)
    assert [problem.reason for problem in problems] == ["FieldValueDuplicate"]


@each(MALFORMED)
def test_malformed_placement_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
