# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which members are deleted or restarted. Pure: the same members always have the same order.

KubeVirt's default is random. Here a decision that is repeated with an older cache must choose the same members.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from controlplane.api.objects.affinity import GREATER, LESS, NodeRequirement
from controlplane.api.objects.pool import DESCENDING, NEWEST, PoolSelectionPolicy, PoolSelectors
from controlplane.api.objects.selector import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, matches
from controlplane.virt_controller.pool.machine import number_of
from controlplane.virt_controller.pool.member import Member


def in_order(pool: str, policy: PoolSelectionPolicy | None, members: Iterable[Member]) -> tuple[Member, ...]:
    """Return the members that the policy selects, in its order."""
    selectors = policy.selectors if policy is not None else None
    selected = [member for member in members if selectors is None or _is_selected(selectors, member)]
    return _sorted(pool, policy.sort_policy if policy is not None else "", selected)


def _sorted(pool: str, sort_policy: str, members: Iterable[Member]) -> tuple[Member, ...]:
    """Sort by the policy. Members that were created in the same second are in the order of their numbers."""
    is_descending = sort_policy in (DESCENDING, NEWEST)
    by_number = sorted(members, key=lambda member: _number(pool, member), reverse=is_descending)
    match sort_policy:
        case "AscendingOrder" | "DescendingOrder":
            return tuple(by_number)
        case "Newest" | "Oldest":
            return tuple(sorted(by_number, key=_created_at, reverse=sort_policy == NEWEST))
    return tuple(sorted(by_number, key=_hash))


def _number(pool: str, member: Member) -> tuple[int, str]:
    number = number_of(pool, member.metadata.name)
    return (-1 if number is None else number), member.metadata.name


def _created_at(member: Member) -> str:
    return member.metadata.creation_timestamp or ""


def _hash(member: Member) -> bytes:
    """A sort key that looks random and is the same in every process."""
    return hashlib.sha256(member.metadata.uid.encode()).digest()


def _is_selected(selectors: PoolSelectors, member: Member) -> bool:
    template = member.spec.template
    if selectors.label_selector is not None and not matches(selectors.label_selector, template.metadata.labels):
        return False
    requirements = selectors.node_selector_requirement_matcher
    return all(_is_met(requirement, template.spec.node_selector) for requirement in requirements)


def _is_met(requirement: NodeRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator in (NOT_IN, DOES_NOT_EXIST):
        return value is None or (requirement.operator == NOT_IN and value not in requirement.values)
    if value is None:
        return False
    if requirement.operator in (GREATER, LESS):
        return _compares(requirement, value)
    return requirement.operator == EXISTS or (requirement.operator == IN and value in requirement.values)


def _compares(requirement: NodeRequirement, text: str) -> bool:
    try:
        value, bound = int(text), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return value > bound if requirement.operator == GREATER else value < bound
