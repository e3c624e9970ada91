# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which objects the role made, which of them it makes no more, and which only have the name of one. Pure.

What the role made carries its marks. The version is a label too, but no mark: an older version's objects are the
role's as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._client.api import FIELD_MANAGER
from .installed import MANAGED_BY, MANAGER
from .kinds import MADE_KINDS

MARKS = {MANAGED_BY: MANAGER, "app.kubernetes.io/part-of": "kubevirt"}
SYSTEM_NAMESPACE = "kube-system"
"""Where the role has a RoleBinding, beside its own namespace."""

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""

_PLACES = {one.kind: place for place, one in enumerate(MADE_KINDS)}
_PRUNED = frozenset(one.kind for one in MADE_KINDS if one.is_pruned)
_FORMER = frozenset(
    {("Secret", "kubevirt-migration-source-certs"), ("Secret", "kubevirt-migration-target-certs")},
)
"""Of kinds that are kept, by kind and name: what an older version made and nothing of anybody's is in."""


def key(obj: Object) -> Key:
    """Return what tells one of our objects from another; API versions come and go."""
    return obj["kind"], obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def title(obj: Object) -> str:
    """Name an object for people."""
    kind, namespace, name = key(obj)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def is_marked(obj: Object) -> bool:
    """Tell whether an object carries all our marks."""
    labels = obj["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in MARKS.items())


def made(found: Iterable[Object], namespace: str | None) -> list[Object]:
    """Choose what the role made from what was found: what carries its marks, where the role puts things.

    They come in the order in which they can go.
    """
    places = (None, "", SYSTEM_NAMESPACE, namespace)
    chosen = [one for one in found if is_marked(one) and one["metadata"].get("namespace") in places]
    return sorted(chosen, key=lambda one: (_PLACES[one["kind"]], key(one)))


def superfluous(ours: Iterable[Object], wanted: Sequence[Object]) -> list[Object]:
    """Choose what an older version, or other options, made and nobody wants any more; nothing if nothing is wanted.

    It must also have been applied by us: whoever copies an object of ours copies its labels as well.
    """
    names = {key(one) for one in wanted}
    return [one for one in ours if names and key(one) not in names and _may_go(one) and _was_applied_by_us(one)]


def _may_go(obj: Object) -> bool:
    return obj["kind"] in _PRUNED or (obj["kind"], obj["metadata"]["name"]) in _FORMER


def _was_applied_by_us(obj: Object) -> bool:
    entries = obj["metadata"].get("managedFields") or ()
    return any(one.get("manager") == FIELD_MANAGER and one.get("operation") == "Apply" for one in entries)


def namesakes(found: Iterable[Object], ours: Iterable[Object], wanted: Iterable[Object]) -> list[str]:
    """Name what has the name of an object that is wanted and is somebody else's; not what goes with our namespace."""
    names = {key(one) for one in wanted}
    mine = {key(one) for one in ours}
    going = {name for kind, _none, name in mine if kind == "Namespace"}
    return [
        title(one)
        for one in found
        if key(one) in names - mine and (one["metadata"].get("namespace") or "") not in going
    ]
