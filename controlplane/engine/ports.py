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

    An index maps an object to values; "owner" (UIDs in ownerReferences) always exists. While `synced` is false, absence
    means nothing.
    """

    @property
    def synced(self) -> bool: ...

    @property
    def resource_version(self) -> int:
        """This copy has every change up to here. Never goes back."""

    def get(self, key: Key) -> bytes | None: ...

    def keys(self) -> Collection[Key]: ...

    def indexed(self, index: str, value: str) -> Collection[Key]: ...

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        """Call back with (key, before, after) on every change, after the cache has stored it.

        before of a deletion is the object's last state, with the version of the deletion, if the server sent it.
        """

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        """Call back with each new resource_version, after the changes up to it."""


class Api(Protocol):
    """Quorum reads, and writes with preconditions. Results are objects as the server stored them."""

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
        """Delete the object with this UID. NotFound: it is gone. Conflict: another object has the name."""


class Clock(Protocol):
    """Monotonic seconds for delays, wall time for timestamps."""

    def monotonic(self) -> float:
        """Seconds that never go back, and go on while the host is suspended."""

    def now(self) -> float:
        """Seconds since the epoch."""
