# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about fields that are copied to the launcher Pod: node selection, spreading, tolerations, resolver settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.affinity import check_affinity
from controlplane.api.admission.validate.metadata import check_label_value, check_labels
from controlplane.api.admission.validate.selector import check_parts
from controlplane.api.objects.topology_spread import DO_NOT_SCHEDULE, TopologySpreadConstraint
from controlplane.api.objects.vmi.instance import DnsConfig, Toleration, VirtualMachineInstanceSpec

SEARCH_CHARACTERS = 256


def check_placement(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check node selection, affinity, tolerations, spreading and DNS settings."""
    yield from check_labels(spec.node_selector, below(path, "nodeSelector"))
    yield from check_affinity(spec.affinity, below(path, "affinity"))
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration(toleration, below(below(path, "tolerations"), index))
    yield from _spreading(spec.topology_spread_constraints, below(path, "topologySpreadConstraints"))
    if spec.dns_policy == "None" and not (spec.dns_config and spec.dns_config.nameservers):
        text = "dnsPolicy None needs dnsConfig.nameservers; set them or another policy"
        yield Problem(below(path, "dnsConfig.nameservers"), text, "FieldValueRequired")
    if spec.dns_config is not None:
        yield from _dns_config(spec.dns_config, below(path, "dnsConfig"))


def _toleration(toleration: Toleration, path: str) -> Iterator[Problem]:
    if toleration.key:
        yield from check_labels({toleration.key: ""}, path)
    elif toleration.operator != "Exists":
        yield Problem(below(path, "key"), "is required unless operator is Exists; set one", "FieldValueRequired")
    if toleration.operator == "Exists" and toleration.value:
        yield Problem(below(path, "value"), "must be empty when operator is Exists; remove it")
    else:
        yield from check_label_value(toleration.value, below(path, "value"))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield Problem(below(path, "effect"), "tolerationSeconds needs effect NoExecute; set that or remove the seconds")


def _spreading(constraints: tuple[TopologySpreadConstraint, ...], path: str) -> Iterator[Problem]:
    kinds = [(constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints]
    for index, constraint in enumerate(constraints):
        where = below(path, index)
        yield from check_labels({constraint.topology_key: ""}, below(where, "topologyKey"))
        if constraint.label_selector is not None:
            yield from check_parts(constraint.label_selector, below(where, "labelSelector"))
        yield from _label_keys(constraint, below(where, "matchLabelKeys"))
        if constraint.min_domains is not None and constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            text = f"needs whenUnsatisfiable {DO_NOT_SCHEDULE}; set that, or remove minDomains"
            yield Problem(below(where, "minDomains"), text)
        if kinds.index(kinds[index]) != index:
            text = "the constraint before it with the same topologyKey and whenUnsatisfiable; remove one"
            yield Problem(where, f"repeats {text}", "FieldValueDuplicate")


def _label_keys(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    keys, selector = constraint.match_label_keys, constraint.label_selector
    yield from check_labels(dict.fromkeys(keys, ""), path)
    if keys and selector is None:
        yield Problem(path, "needs a labelSelector; add one, or remove the keys")
    if selector is not None:
        named = {*selector.match_labels, *(expression.key for expression in selector.match_expressions)}
        for name in sorted(named & {*keys}):
            yield Problem(path, f"has {excerpt(name)}, which is in labelSelector, too; remove one")


def _dns_config(config: DnsConfig, path: str) -> Iterator[Problem]:
    for index, address in enumerate(config.nameservers):
        try:
            ipaddress.ip_address(address)
        except ValueError:
            where = below(below(path, "nameservers"), index)
            yield Problem(where, f"{excerpt(address)} is not an IP address; write e.g. 10.96.0.10")
    length = len(" ".join(config.searches))
    if length > SEARCH_CHARACTERS:
        text = f"have {length} characters together, at most {SEARCH_CHARACTERS} are allowed; remove some"
        yield Problem(below(path, "searches"), text)
    for index, option in enumerate(config.options):
        if not option.name:
            where = below(below(below(path, "options"), index), "name")
            yield Problem(where, "is required; set it, e.g. ndots", "FieldValueRequired")
