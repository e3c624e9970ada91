# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that cannot be read: which they are, all the same, so that each costs itself and no other.

Whoever may make an object may make one that our decoder refuses: an API server stores 10,000 levels of nesting, also
in managedFields, which no schema bounds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from controlplane.api.objects.resources import Key
from controlplane.kube import shallow

log = logging.getLogger(__name__)

NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class UnreadableError(Exception):
    """An object that cannot be taken in, however often it is read again."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object it is, in which version."""

    key: Key
    version: str


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event_decoder = msgspec.json.Decoder(_Event)


async def identify(raw: bytes) -> Identity | None:
    """Return what an object is that cannot be read, if that much can be seen.

    In a thread, for it takes long and whoever can make one can make many: nothing else waits for it.
    """
    return await asyncio.to_thread(_identify, raw)


def _identify(raw: bytes) -> Identity | None:
    try:
        metadata = shallow.members(shallow.members(raw)["metadata"])
        name, version = (shallow.text(metadata[field]) for field in ("name", "resourceVersion"))
        namespace = shallow.text(metadata.get("namespace", b'""'))
    except (ValueError, KeyError):
        return None
    return Identity(Key(namespace, name), version) if name and version else None


async def read_event(line: bytes) -> tuple[str, bytes]:
    """Return what a line of a stream says happened, and to what. Raises UnreadableError."""
    try:
        event = _event_decoder.decode(line)
    except RecursionError:
        return await asyncio.to_thread(_split_event, line)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error
    return event.type, bytes(event.object)


def _split_event(line: bytes) -> tuple[str, bytes]:
    try:
        parts = shallow.members(line)
        return shallow.text(parts["type"]), parts["object"]
    except (ValueError, KeyError) as error:
        raise UnreadableError(str(error)) from error


@dataclass(slots=True)
class Told:
    """Says of each object once that it cannot be read, until it can be, or is gone."""

    what: object
    _keys: set[Key] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._keys)

    def tell(self, identity: Identity | None, why: Exception) -> None:
        key = identity.key if identity else None
        if key not in self._keys:
            log.warning("cannot read an object", extra={"watching": self.what, "key": key or "?", "because": why})
        if key is not None:
            self._keys.add(key)

    def forget(self, key: Key) -> None:
        self._keys.discard(key)

    def forget_others(self, than: Collection[Key | None]) -> None:
        self._keys.intersection_update(than)
