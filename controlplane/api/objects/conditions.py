# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find, put and remove conditions in immutable lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec

from controlplane.api.objects.meta import Condition
from controlplane.api.schema.bounds import MAX_TEXT

Conditions = tuple[Condition, ...]


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of this type, if it is there."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Tell whether the condition is there and True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def put(conditions: Conditions, new: Condition, now: str) -> Conditions:
    """Return the list with this condition; the same list when nothing changes.

    An existing condition is replaced if its status, reason or the fingerprint of its message differs. A changed number
    (a back-off, a count of nodes) is not worth a write. lastTransitionTime becomes `now` (RFC 3339) only when the
    status differs. A long reason or message is cut: the API server would refuse the whole status.
    """
    new = msgspec.structs.replace(new, reason=new.reason[:MAX_TEXT], message=new.message[:MAX_TEXT])
    old = find(conditions, new.type)
    if old is None:
        return (*conditions, msgspec.structs.replace(new, last_transition_time=new.last_transition_time or now))
    if is_equivalent(old, new):
        return conditions
    moved = now if old.status != new.status else old.last_transition_time
    changed = msgspec.structs.replace(new, last_transition_time=moved)
    return tuple(changed if condition.type == new.type else condition for condition in conditions)


def put_or_remove(conditions: Conditions, kind: str, new: Condition | None, now: str) -> Conditions:
    """Put the condition, or remove the one of this type when `new` is None."""
    return remove(conditions, kind) if new is None else put(conditions, new, now)


def is_equivalent(condition: Condition, other: Condition) -> bool:
    """Tell whether two conditions of a type differ only in numbers of the message, if at all."""
    return (condition.status, condition.reason, _fingerprint(condition.message)) == (
        other.status,
        other.reason,
        _fingerprint(other.message),
    )


def newly_false(before: Iterable[Condition], after: Iterable[Condition], kinds: Collection[str]) -> Conditions:
    """Return the conditions of these types that have become False, or are False for another reason."""
    previous = {condition.type: condition for condition in before}
    false = (condition for condition in after if condition.type in kinds and condition.status == "False")
    return tuple(
        condition
        for condition in false
        if condition.type not in previous or not is_equivalent(previous[condition.type], condition)
    )


def _fingerprint(message: str) -> str:
    return re.sub(r"\d+", "#", message)


def remove(conditions: Conditions, kind: str) -> Conditions:
    """Return the list without this condition; the same list when it has none."""
    if find(conditions, kind) is None:
        return conditions
    return tuple(condition for condition in conditions if condition.type != kind)
