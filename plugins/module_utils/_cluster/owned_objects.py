# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which objects the role created, which of them it no longer wants, and which only share a name. Pure.

The role's objects carry its marks. The version is a label and no mark: objects of an older version are the role's too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._client.api import FIELD_MANAGER
from .installed import MANAGED_BY, MANAGER
from .kinds import MADE_KINDS

MARKS = {MANAGED_BY: MANAGER, "app.kubernetes.io/part-of": "kubevirt"}
SYSTEM_NAMESPACE = "kube-system"
"""The role creates a RoleBinding in this namespace."""

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace ("" for none) and name."""

_ORDER = {kind.kind: index for index, kind in enumerate(MADE_KINDS)}
_PRUNED = frozenset(kind.kind for kind in MADE_KINDS if kind.is_pruned)
_FORMER = frozenset(
    {("Secret", "kubevirt-migration-source-certs"), ("Secret", "kubevirt-migration-target-certs")},
)
"""Kind and name of objects of an older version that hold no data, of kinds that an upgrade otherwise keeps."""


def key(obj: Object) -> Key:
    """Return the identity of an object. Its API version may change between releases."""
    return obj["kind"], obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def title(obj: Object) -> str:
    """Return kind, namespace and name for messages."""
    kind, namespace, name = key(obj)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def is_marked(obj: Object) -> bool:
    """Tell whether an object carries all marks of the role."""
    labels = obj["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in MARKS.items())


def owned(objects: Iterable[Object], namespace: str | None) -> list[Object]:
    """Return the role's objects in the order in which they can be deleted: marked, and in a namespace that it uses.

    The namespace matters because a user's copy in another namespace has our labels too.
    """
    namespaces = (None, "", SYSTEM_NAMESPACE, namespace)
    chosen = [obj for obj in objects if is_marked(obj) and obj["metadata"].get("namespace") in namespaces]
    return sorted(chosen, key=lambda obj: (_ORDER[obj["kind"]], key(obj)))


def superfluous(ours: Iterable[Object], wanted: Sequence[Object]) -> list[Object]:
    """Return the objects that are no longer wanted; none if nothing is wanted.

    The role must have applied them: a user's copy of an object has its labels too.
    """
    names = {key(obj) for obj in wanted}  # empty: the task only asks for the state
    return [obj for obj in ours if names and key(obj) not in names and _is_deletable(obj) and _was_applied_by_us(obj)]


def _is_deletable(obj: Object) -> bool:
    return obj["kind"] in _PRUNED or (obj["kind"], obj["metadata"]["name"]) in _FORMER


def _was_applied_by_us(obj: Object) -> bool:
    entries = obj["metadata"].get("managedFields") or ()
    return any(entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" for entry in entries)


def namesakes(objects: Iterable[Object], ours: Iterable[Object], wanted: Iterable[Object]) -> list[str]:
    """Return the titles of others' objects with the name of a wanted object, except in a namespace that we delete."""
    names = {key(obj) for obj in wanted}
    own_keys = {key(obj) for obj in ours}
    deleted_namespaces = {name for kind, _none, name in own_keys if kind == "Namespace"}
    return [
        title(obj)
        for obj in objects
        if key(obj) in names - own_keys and (obj["metadata"].get("namespace") or "") not in deleted_namespaces
    ]
