# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache of decoded members."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache

MemberT = TypeVar("MemberT")


class MemberCache(Generic[MemberT]):
    """Decodes an object again only when it has changed."""

    def __init__(self, cache: Cache, decode: Callable[[bytes], MemberT]) -> None:
        self._cache = cache
        self._decode = decode
        self._members: dict[Key, tuple[bytes, MemberT]] = {}
        cache.subscribe(self._forget)

    def read(self, keys: Iterable[Key]) -> tuple[MemberT, ...]:
        """Return the members that exist, by name. Raises msgspec.DecodeError."""
        return tuple(self._member(key, raw) for key in sorted(keys) if (raw := self._cache.get(key)) is not None)

    def __len__(self) -> int:
        return len(self._members)

    def _member(self, key: Key, raw: bytes) -> MemberT:
        entry = self._members.get(key)
        # The bytes are compared by identity: the cache shows an own write before it reports the change.
        if entry is None or entry[0] is not raw:
            entry = self._members[key] = raw, self._decode(raw)
        return entry[1]

    def _forget(self, key: Key, _before: bytes | None, _after: bytes | None) -> None:
        self._members.pop(key, None)
