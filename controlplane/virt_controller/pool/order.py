# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who comes first when machines are deleted or restarted: pure, and always the same for the same machines.

Also where upstream rolls dice: whoever decides again, with what was known before, must choose the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from controlplane.api.objects.affinity import GREATER, LESS, NodeRequirement
from controlplane.api.objects.pool import DESCENDING, NEWEST, PoolSelectionPolicy, PoolSelectors
from controlplane.api.objects.selector import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, matches
from controlplane.virt_controller.pool.machine import number_of
from controlplane.virt_controller.pool.member import Member


def chosen(pool: str, policy: PoolSelectionPolicy | None, members: Iterable[Member]) -> tuple[Member, ...]:
    """Return those that may be chosen, the first one first."""
    selectors = policy.selectors if policy is not None else None
    meant = [one for one in members if selectors is None or _is_meant(selectors, one)]
    return ordered(pool, policy.sort_policy if policy is not None else "", meant)


def ordered(pool: str, how: str, members: Iterable[Member]) -> tuple[Member, ...]:
    """Put machines in order. Those of the same second are in the order of their numbers, as they were made."""
    by_number = sorted(members, key=lambda one: _number(pool, one), reverse=how in (DESCENDING, NEWEST))
    match how:
        case "AscendingOrder" | "DescendingOrder":
            return tuple(by_number)
        case "Newest" | "Oldest":
            return tuple(sorted(by_number, key=_made_at, reverse=how == NEWEST))
    return tuple(sorted(by_number, key=_as_by_chance))


def _number(pool: str, one: Member) -> tuple[int, str]:
    number = number_of(pool, one.metadata.name)
    return (-1 if number is None else number), one.metadata.name


def _made_at(one: Member) -> str:
    return one.metadata.creation_timestamp or ""


def _as_by_chance(one: Member) -> bytes:
    return hashlib.sha256(one.metadata.uid.encode()).digest()


def _is_meant(selectors: PoolSelectors, one: Member) -> bool:
    template = one.spec.template
    if selectors.label_selector is not None and not matches(selectors.label_selector, template.metadata.labels):
        return False
    asked = selectors.node_selector_requirement_matcher
    return all(_is_met(requirement, template.spec.node_selector) for requirement in asked)


def _is_met(asked: NodeRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(asked.key)
    if asked.operator in (NOT_IN, DOES_NOT_EXIST):
        return value is None or (asked.operator == NOT_IN and value not in asked.values)
    if value is None:
        return False
    if asked.operator in (GREATER, LESS):
        return _compares(asked, value)
    return asked.operator == EXISTS or (asked.operator == IN and value in asked.values)


def _compares(asked: NodeRequirement, value: str) -> bool:
    try:
        found, bound = int(value), int(asked.values[0])
    except (ValueError, IndexError):
        return False
    return found > bound if asked.operator == GREATER else found < bound
