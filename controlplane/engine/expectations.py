# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expectations: what a process knows of one object before its cache does, and until when. Pure.

read_your_writes.py keeps them. An expectation is about one UID, so a second object of the same name never inherits it.
It ends at a resourceVersion, never at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from controlplane.engine.ports import Json


class _Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str
    uid: str = ""
    deletion_timestamp: str | None = None


class _Object(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class CachedVersion:
    """Which version of which object a cache has, or had."""

    version: int
    uid: str
    is_deleting: bool


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as the API server answered a write or a read."""

    version: int
    raw: bytes
    owners: frozenset[str]
    is_deleting: bool


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is known of the object of one UID and may be news to the cache."""

    uid: str
    until: int = 0
    """At this resourceVersion the cache knows as much as the answer, and absence from it means something."""
    answer: StoredObject | None = None
    is_delete_sent: bool = False
    is_gone: bool = False
    """The API server answered that it does not exist: show neither the answer nor the cached object."""

    @property
    def shown(self) -> StoredObject | None:
        return None if self.is_gone else self.answer


def read_version(raw: bytes) -> CachedVersion:
    """Decode what expectations are compared with. Raises msgspec.DecodeError for anything but an object."""
    meta = _decoder.decode(raw).metadata
    return CachedVersion(int(meta.resource_version), meta.uid, meta.deletion_timestamp is not None)


def read_stored(body: Json) -> StoredObject:
    """Take version, owners and deletion from an answer's metadata."""
    meta = body["metadata"]
    owners = frozenset(owner["uid"] for owner in meta.get("ownerReferences") or ())
    return StoredObject(int(meta["resourceVersion"]), msgspec.json.encode(body), owners, "deletionTimestamp" in meta)


def is_last_state(body: Json) -> bool:
    """Tell whether the object ended with this write: the answer is its last state."""
    meta = body["metadata"]
    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in meta and not waits


def advance(expectation: Expectation, cached: CachedVersion | None, resource_version: int) -> Expectation | None:
    """Return what remains expected of a cache at resource_version that has `cached` under the name; None: nothing."""
    is_ahead = resource_version < expectation.until
    is_cached = cached is not None and cached.uid == expectation.uid
    answer = expectation.answer if is_ahead else None
    shown = answer or (cached if is_cached else None)
    rest = replace(
        expectation,
        answer=answer,
        is_delete_sent=expectation.is_delete_sent and shown is not None and not shown.is_deleting,
        is_gone=expectation.is_gone and (is_ahead or is_cached),
    )
    return rest if rest.answer or rest.is_delete_sent or rest.is_gone else None
