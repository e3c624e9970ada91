# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process knows about one object before its cache does, and when that ends: pure. overlay.py keeps the records.

A record is about one UID, so a second object of the same name never inherits what was said about the first. Its end is
a position in the server's history, never a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from controlplane.engine.ports import Json


class _Owner(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    resource_version: str
    uid: str = ""
    deletion_timestamp: str | None = None


class _Object(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class CachedVersion:
    """Which state of which object the cache has, or had."""

    version: int
    uid: str
    is_deleting: bool


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as the API server stored or found it."""

    version: int
    raw: bytes
    owners: frozenset[str]
    is_deleting: bool


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is known about the object of one UID and may be news to the cache."""

    uid: str
    until: int = 0
    """Once the cache has read up to here, it knows as much as the answer, and its silence means something."""
    answer: StoredObject | None = None
    is_delete_sent: bool = False
    is_gone: bool = False
    """The API server said that it exists no more: neither the answer nor the cache's copy is to be shown."""

    @property
    def shown(self) -> StoredObject | None:
        return None if self.is_gone else self.answer


def read_version(raw: bytes) -> CachedVersion:
    """Decode what records are compared with. Raises msgspec.DecodeError for what is no object."""
    meta = _decoder.decode(raw).metadata
    return CachedVersion(int(meta.resource_version), meta.uid, meta.deletion_timestamp is not None)


def read_stored(body: Json) -> StoredObject:
    """Take from an answer's metadata, once, all that is asked of it later."""
    meta = body["metadata"]
    owners = frozenset(owner["uid"] for owner in meta.get("ownerReferences") or ())
    return StoredObject(int(meta["resourceVersion"]), msgspec.json.encode(body), owners, "deletionTimestamp" in meta)


def is_last_state(body: Json) -> bool:
    """Tell whether a write's answer is the last state of an object that this write ended."""
    meta = body["metadata"]
    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in meta and not waits


def advance(record: Expectation, cached: CachedVersion | None, resource_version: int) -> Expectation | None:
    """Return what is left of a record when the cache has read up to position and holds `cached` under the name."""
    is_ahead = resource_version < record.until
    is_cached = cached is not None and cached.uid == record.uid
    answer = record.answer if is_ahead else None
    shown = answer or (cached if is_cached else None)
    left = replace(
        record,
        answer=answer,
        is_delete_sent=record.is_delete_sent and shown is not None and not shown.is_deleting,
        is_gone=record.is_gone and (is_ahead or is_cached),
    )
    return left if left.answer or left.is_delete_sent or left.is_gone else None
