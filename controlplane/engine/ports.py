# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine and the reconcilers need from an API: a cache and a few verbs.

Only protocols and values live here. controlplane.kube implements them on a real API server, the
simulation in tests/ on an in-memory one. Errors are those of controlplane.engine.errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, Protocol

from controlplane.api.objects.resources import Key, Resource

Json = dict[str, Any]


class Cache(Protocol):
    """A local, possibly stale copy of one resource: raw JSON bytes by key, plus indexes.

    An index is a named function from object to the values it is filed under; "owner" (UIDs in
    ownerReferences) always exists. Nothing may be concluded from absence while `synced` is false.
    """

    @property
    def synced(self) -> bool: ...

    @property
    def resource_version(self) -> int:
        """How far in the server's history this copy has read: every change up to here was told. Never goes back."""

    def get(self, key: Key) -> bytes | None: ...

    def keys(self) -> Collection[Key]: ...

    def indexed(self, index: str, value: str) -> Collection[Key]: ...

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        """Call back with (key, before, after) on every change, after the cache has taken it in.

        before of a deletion is the object's last state, if the server told it, with the deletion's own version.
        """

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        """Call back with the position each time it has moved, after the changes up to it."""


class Api(Protocol):
    """Quorum reads and precise writes. Every answer is the object as the server stored it."""

    async def get(self, resource: Resource, key: Key) -> Json: ...

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json: ...

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: Literal["", "status"] = "",
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Json:
        """Send a JSON merge patch. resource_version and uid become preconditions inside the patch."""

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str,
        resource_version: str | None = None,
    ) -> None:
        """Delete exactly the object with this UID; NotFound when it is gone, Conflict when it is another."""


class Clock(Protocol):
    """Time as the engine sees it: monotonic seconds for delays, wall time for stamps."""

    def monotonic(self) -> float:
        """Seconds that never go back, and go on while the host is suspended."""

    def now(self) -> float:
        """Seconds since the epoch."""
