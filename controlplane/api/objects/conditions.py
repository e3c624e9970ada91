# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of conditions as values: find, set, remove. Nothing is changed in place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec

from controlplane.api.objects.meta import Condition
from controlplane.api.schema.bounds import MAX_TEXT

Conditions = tuple[Condition, ...]


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of this type, if it is there."""
    return next((one for one in conditions if one.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Tell whether the condition is there and True."""
    found = find(conditions, kind)
    return found is not None and found.status == "True"


def put(conditions: Conditions, new: Condition, now: str) -> Conditions:
    """Return the list with this condition in it; the very same list when that changes nothing.

    An existing condition is replaced if its status, reason or the fingerprint of its message differs. A changed number
    (a back-off, a count of nodes) is not worth a write. lastTransitionTime becomes `now` (RFC 3339) only
    when the status differs. What is longer than a condition may be is cut here, once for whoever says it: the API
    server would refuse the whole status.
    """
    new = msgspec.structs.replace(new, reason=new.reason[:MAX_TEXT], message=new.message[:MAX_TEXT])
    old = find(conditions, new.type)
    if old is None:
        return (*conditions, msgspec.structs.replace(new, last_transition_time=new.last_transition_time or now))
    if is_equivalent(old, new):
        return conditions
    moved = now if old.status != new.status else old.last_transition_time
    changed = msgspec.structs.replace(new, last_transition_time=moved)
    return tuple(changed if one.type == new.type else one for one in conditions)


def put_or_remove(conditions: Conditions, kind: str, found: Condition | None, now: str) -> Conditions:
    """Return the list with what was found for this type, or without one; see put and remove."""
    return remove(conditions, kind) if found is None else put(conditions, found, now)


def is_equivalent(one: Condition, other: Condition) -> bool:
    """Tell whether two conditions of a type tell a person the same."""
    return (one.status, one.reason, _fingerprint(one.message)) == (
        other.status,
        other.reason,
        _fingerprint(other.message),
    )


def newly_false(before: Iterable[Condition], after: Iterable[Condition], kinds: Collection[str]) -> Conditions:
    """Return the conditions of these types that have become False since, or are so for another reason."""
    known = {one.type: one for one in before}
    told = (one for one in after if one.type in kinds and one.status == "False")
    return tuple(one for one in told if one.type not in known or not is_equivalent(known[one.type], one))


def _fingerprint(message: str) -> str:
    return re.sub(r"\d+", "#", message)


def remove(conditions: Conditions, kind: str) -> Conditions:
    """Return the list without this condition; the very same list when it is not there."""
    if find(conditions, kind) is None:
        return conditions
    return tuple(one for one in conditions if one.type != kind)
