# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The little that a replica set reads of an instance: it may have thousands, and looks at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Node, ObjectMeta
from controlplane.api.objects.phase import RUNNING, is_final
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.status import PhaseTransition, has_entered
from controlplane.engine.ports import Cache


class MemberStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    phase_transition_timestamps: tuple[PhaseTransition, ...] = ()


class Member(Node, frozen=True, kw_only=True):
    """An instance that belongs to a set, or might."""

    metadata: ObjectMeta = ObjectMeta()
    status: MemberStatus = MemberStatus()

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_over(self) -> bool:
        return is_final(self.status.phase)

    @property
    def has_run(self) -> bool:
        """Tell whether its guest ran at some time."""
        return has_entered(RUNNING, self.status.phase, self.status.phase_transition_timestamps)

    @property
    def is_failed_start(self) -> bool:
        """Tell whether it ended by itself without ever having run."""
        return self.is_over and not self.has_run and not self.is_deleting

    @property
    def is_ready(self) -> bool:
        return conditions.is_true(self.status.conditions, condition_types.READY)

    @property
    def is_losing_its_pod(self) -> bool:
        """Tell whether its launcher Pod is being deleted, e.g. by a drain: it will end, and counts no more."""
        ready = conditions.find(self.status.conditions, condition_types.READY)
        return ready is not None and (ready.status, ready.reason) == ("False", condition_types.POD_TERMINATING)


UNCONTROLLED = "uncontrolled"
"""Index of instances that no owner controls, by namespace."""
_decoder = msgspec.json.Decoder(Member)
Gist = tuple[object, ...]


def read_member(raw: bytes) -> Member:
    """Read an instance. Raises msgspec.DecodeError for what does not fit."""
    return _decoder.decode(raw)


OneT = TypeVar("OneT")


class Members(Generic[OneT]):
    """Objects of a cache as they were last read: what has not changed since is not decoded again."""

    def __init__(self, cache: Cache, read: Callable[[bytes], OneT]) -> None:
        self._cache = cache
        self._read = read
        self._held: dict[Key, tuple[bytes, OneT]] = {}
        cache.subscribe(self._forget)

    def read(self, keys: Iterable[Key]) -> tuple[OneT, ...]:
        """Read those that there are, by name. Raises msgspec.DecodeError for what does not fit."""
        return tuple(self._member(key, raw) for key in sorted(keys) if (raw := self._cache.get(key)) is not None)

    def __len__(self) -> int:
        return len(self._held)

    def _member(self, key: Key, raw: bytes) -> OneT:
        held = self._held.get(key)
        if held is None or held[0] is not raw:
            held = self._held[key] = raw, self._read(raw)
        return held[1]

    def _forget(self, key: Key, _before: bytes | None, _after: bytes | None) -> None:
        self._held.pop(key, None)


def fingerprint(member: Member) -> Gist:
    """Return what a set's decisions depend on; everything else of an instance may change unseen."""
    meta, owners = member.metadata, tuple((one.uid, one.controller) for one in member.metadata.owner_references)
    counts = (member.is_over, member.is_ready, member.is_losing_its_pod, member.is_deleting)
    return (meta.uid, tuple(sorted(meta.labels.items())), owners, counts)
