# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a member that are read. The view is small: a set may have thousands of members, and reads all."""

from __future__ import annotations

from collections.abc import Iterable

from controlplane.api.objects.meta import Node, ObjectMeta
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import Key

Fingerprint = tuple[object, ...]


class MemberView(Node, frozen=True, kw_only=True):
    """An object that belongs to a set, or may be adopted by one."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def is_controlled_by(self, kind: str, uid: str) -> bool:
        owner = controller_of(self.metadata)
        return owner is not None and (owner.kind, owner.uid) == (kind, uid)


def identity(member: MemberView) -> Fingerprint:
    """Return the fields that make an object a member: its UID, labels and owners."""
    meta = member.metadata
    return meta.uid, pairs(meta.labels.items()), tuple((owner.uid, owner.controller) for owner in meta.owner_references)


def pairs(items: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(items))
