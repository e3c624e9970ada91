# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether any node of the cluster could take a machine: what it requests, and what the nodes have. Pure.

Only what nodes have as a whole counts: other Pods may end, and a cordon, a taint or a silent virt-handler may go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...kubevirt_api import names
from ..merge.compare import quantity

_OWN_DOMAIN = "kubevirt.io"
"""Labels of this domain and those below it follow the state of a node's virt-handler."""

Object = Mapping[str, Any]
Amounts = dict[str, float]
"""Resource to amount, in bytes or CPUs."""


def requests_of_pod(pod: Object) -> Amounts:
    """Return what a Pod requests: its containers together, or one init container if that requests more."""
    spec = pod.get("spec") or {}
    amounts: Amounts = {}
    for container in spec.get("containers") or ():
        for resource, amount in _requests(container).items():
            amounts[resource] = amounts.get(resource, 0.0) + amount
    for container in spec.get("initContainers") or ():
        for resource, amount in _requests(container).items():
            amounts[resource] = max(amounts.get(resource, 0.0), amount)
    return amounts


def requests_of_machine(spec: Object) -> Amounts:
    """Return what a machine needs at least: the memory that it requests, or that of its guest."""
    domain = spec.get("domain") or {}
    requests = _requests(domain)
    guest = _amounts({"memory": (domain.get("memory") or {}).get("guest")})
    return requests if "memory" in requests else {**guest, **requests}


def selector_of(spec: Object) -> dict[str, str]:
    """Return the node selector of a machine or Pod, without labels of the control plane."""
    selector = spec.get("nodeSelector") or {}
    return {key: value for key, value in selector.items() if not key.partition("/")[0].endswith(_OWN_DOMAIN)}


def reason(requests: Amounts, selector: Mapping[str, str], nodes: Sequence[Object], *, without: str = "") -> str | None:
    """Return why no node can ever take the machine; None if one can, or if no node runs machines at all.

    without: the node that a migrating machine leaves.
    """
    runners = [node for node in nodes if names.SCHEDULABLE in _labels(node)]
    others = [node for node in runners if node["metadata"]["name"] != without]
    if not runners:
        return None
    if not others:
        return "there is no other node that runs machines; add one"
    chosen = [node for node in others if selector.items() <= _labels(node).items()]
    if not chosen:
        return f"no node has the labels {selector_text(selector)}; label one, or change the node selector"
    where = f" with {selector_text(selector)}" if selector else ""
    offers = [_amounts((node.get("status") or {}).get("allocatable")) for node in chosen]
    for resource, amount in requests.items():
        largest = max(offer.get(resource, 0.0) for offer in offers)
        if amount > largest:
            has = amount_text(resource, largest)
            return (
                f"it asks for {amount_text(resource, amount)}, and no node{where} has more than {has}; ask for less, or"
                " add a node"
            )
    if any(all(offer.get(resource, 0.0) >= amount for resource, amount in requests.items()) for offer in offers):
        return None
    return f"no node{where} has {amounts_text(requests)} together; ask for less, or add a node"


def amounts_text(amounts: Amounts) -> str:
    """Return the amounts in words."""
    return " and ".join(amount_text(resource, amount) for resource, amount in amounts.items() if amount)


def pod_requests_text(pod: Object) -> str:
    """Return the requests and the node selector of a Pod in words, "" if it has none."""
    requests, selector = amounts_text(requests_of_pod(pod)), selector_text(selector_of(pod.get("spec") or {}))
    return " on a node with ".join(filter(None, (requests and f"it asks for {requests}", selector)))


def selector_text(selector: Mapping[str, str]) -> str:
    """Return the labels in words."""
    return ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))


def amount_text(resource: str, amount: float) -> str:
    """Return an amount with its resource, rounded to two digits."""
    if resource == "cpu":
        return f"{amount:g} CPU" + ("" if amount == 1 else "s")
    unit, factor = ("Gi", 2.0**30) if amount >= 2**30 else ("Mi", 2.0**20)
    return f"{f'{amount / factor:.2f}'.rstrip('0').rstrip('.')}{unit} of {resource}"


def _labels(node: Object) -> Mapping[str, str]:
    return node["metadata"].get("labels") or {}


def _requests(container: Object) -> Amounts:
    """Return the requests of a container, or of a domain, which has them in the same fields."""
    return _amounts((container.get("resources") or {}).get("requests"))


def _amounts(amounts: Any) -> Amounts:
    """Return the amounts of memory, huge pages and CPUs. Devices may appear later."""
    results: Amounts = {}
    for resource, text in (amounts or {}).items():
        amount = quantity(text) if resource in ("memory", "cpu") or resource.startswith("hugepages-") else None
        if amount is not None:
            results[resource] = float(amount)
    return results
