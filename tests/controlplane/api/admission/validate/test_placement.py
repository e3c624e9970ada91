# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about node selectors, tolerations, DNS and host name."""

from __future__ import annotations

from typing import Any

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
    ("malformed selector", {"labelSelector": {"matchLabels": {"a b": ""}}}, "label", ".matchLabels[a b]"),
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


@each(MALFORMED)
def test_malformed_placement_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
