# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of conditions as values: find, set, remove. Nothing is changed in place."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from controlplane.api.objects.meta import Condition

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

    An existing condition is replaced only if status or reason differ: a new message alone is not worth a write.
    lastTransitionTime becomes `now` (RFC 3339) only when the status differs.
    """
    old = find(conditions, new.type)
    if old is None:
        return (*conditions, msgspec.structs.replace(new, last_transition_time=new.last_transition_time or now))
    if (old.status, old.reason) == (new.status, new.reason):
        return conditions
    moved = now if old.status != new.status else old.last_transition_time
    changed = msgspec.structs.replace(new, last_transition_time=moved)
    return tuple(changed if one.type == new.type else one for one in conditions)


def remove(conditions: Conditions, kind: str) -> Conditions:
    """Return the list without this condition; the very same list when it is not there."""
    if find(conditions, kind) is None:
        return conditions
    return tuple(one for one in conditions if one.type != kind)
