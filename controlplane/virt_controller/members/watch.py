# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What enqueues a set when a member changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.ports import Cache
from controlplane.virt_controller.controller import KeysOf
from controlplane.virt_controller.members.member import Fingerprint, MemberView
from controlplane.virt_controller.members.world import MemberT


def sets_of_member(
    sets: Cache,
    kind: Resource,
    read_member: Callable[[bytes], MemberT],
    fingerprint: Callable[[MemberT], Fingerprint],
    *,
    adopts: bool,
) -> KeysOf:
    """Enqueue the set that controls a member, after a change that the set's decisions depend on.

    A VMI, for example, is written about ten times while it starts. adopts: a member without a controller enqueues all
    sets of its namespace, which may adopt it.
    """

    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if not sets.keys():
            return  # most clusters have no sets, and members change often
        members = [None if raw is None else read_member(raw) for raw in (before, after)]
        old, new = (None if member is None else fingerprint(member) for member in members)
        if old != new:
            yield from {owner for member in members if member is not None for owner in owners(key.namespace, member)}

    def owners(namespace: str, member: MemberView) -> list[Key]:
        if adopts and controller_of(member.metadata) is None:
            keys_of_sets = sets.keys()
            return [key for key in keys_of_sets if key.namespace == namespace]
        return set_of(kind, namespace, member)

    return keys


def set_of(kind: Resource, namespace: str, member: MemberView) -> list[Key]:
    """Return the set of this kind that controls a member, if there is one."""
    owner = controller_of(member.metadata)
    return [Key(namespace, owner.name)] if owner is not None and owner.kind == kind.kind else []
