# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a member that its set reads. There are few, because a set may have thousands of members."""

from __future__ import annotations

from collections.abc import Iterable

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Node, ObjectMeta
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.status import PhaseTransition

Fingerprint = tuple[object, ...]


class MemberStatus(Node, frozen=True, kw_only=True):
    """phase and its times: of a VMI only."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    phase_transition_timestamps: tuple[PhaseTransition, ...] = ()


class MemberView(Node, frozen=True, kw_only=True):
    """An object that belongs to a set, or may be adopted by one."""

    metadata: ObjectMeta = ObjectMeta()
    status: MemberStatus = MemberStatus()

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.status.conditions, condition_types.READY)

    def is_controlled_by(self, kind: str, uid: str) -> bool:
        owner = controller_of(self.metadata)
        return owner is not None and (owner.kind, owner.uid) == (kind, uid)


def identity(member: MemberView) -> Fingerprint:
    """Return the fields that make an object a member: its UID, labels and owners."""
    meta = member.metadata
    return meta.uid, pairs(meta.labels.items()), tuple((owner.uid, owner.controller) for owner in meta.owner_references)


def pairs(labels: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels))
