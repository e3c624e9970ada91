# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the fields that a user's write changes although only the control plane may change them.

A CRD rule (`self == oldSelf`) cannot do this: it would also refuse the control plane's own writes (hotplug, hand-over).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.problem import EXCERPT, Problem, below, excerpt

LONGEST_PATH = 200
"""Characters of a path. A longer one is not followed: users can invent names."""
_ABSENT = object()


def check_unchanged(old: dict[str, Any], new: dict[str, Any], why: str) -> Iterator[Problem]:
    """Yield a problem for each changed field of the spec, and for each new field beside it. old, new: normalized."""
    for path in _changed(old.get("spec", _ABSENT), new.get("spec", _ABSENT), "spec"):
        yield Problem(path, why, "FieldValueForbidden")
    for name in sorted(set(new) - set(old) - {"spec"}):
        yield Problem(_shown(name), why, "FieldValueForbidden")


def _changed(old: Any, new: Any, path: str) -> Iterator[str]:
    """Yield the path of each difference, as deep as both sides have the same shape."""
    if old == new:
        return
    if len(path) > LONGEST_PATH:
        yield path
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(set(old) | set(new)):
            yield from _changed(old.get(name, _ABSENT), new.get(name, _ABSENT), below(path, _shown(name)))
    elif isinstance(old, list) and isinstance(new, list) and _names(old) == _names(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changed(before, after, below(path, index))
    else:
        yield path


def _names(entries: list[Any]) -> list[Any]:
    """Return the names of a list's entries. If they differ, the list itself has changed, not its entries."""
    return [entry.get("name") if isinstance(entry, dict) else None for entry in entries]


def _shown(name: str) -> str:
    return name if len(name) <= EXCERPT and name.isascii() and name.isprintable() else excerpt(name)
