# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about fields that are copied to the launcher Pod: node selection, tolerations, resolver settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.affinity import check_affinity
from controlplane.api.admission.validate.metadata import check_label_value, check_labels
from controlplane.api.objects.vmi.instance import DnsConfig, Toleration, VirtualMachineInstanceSpec

SEARCH_CHARACTERS = 256


def check_placement(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check node selection, affinity, tolerations and DNS settings."""
    yield from check_labels(spec.node_selector, below(path, "nodeSelector"))
    yield from check_affinity(spec.affinity, below(path, "affinity"))
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration(toleration, below(below(path, "tolerations"), index))
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
