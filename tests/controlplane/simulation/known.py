# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process sees of objects compared with the store: never older than before, and correct once all events are
delivered.

This holds for every cache, and for the read-your-writes cache over it, whether or not a decision used it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.changes import BY_NODE
from tests.controlplane.simulation.watching import WatchingCache
from tests.support.store import Json


class _Meta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Object)


def keep_from_going_back(cache: WatchingCache, complain: Callable[[str], None]) -> None:
    """Report when a cache shows an older state after a newer one, or its resource version goes back."""
    shown: dict[Key, int] = {}
    last = 0

    def changed(key: Key, _before: bytes | None, after: bytes | None) -> None:
        if after is not None:
            version, known = _version(after), shown.get(key, 0)
            if version < known:
                complain(f"{cache.resource.kind} {key} is shown as of {version}, and was shown as of {known}")
            shown[key] = max(version, known)

    def moved(resource_version: int) -> None:
        nonlocal last
        if resource_version < last:
            complain(f"{cache.resource.plural} are read up to {resource_version}, and were up to {last}")
        last = max(last, resource_version)

    cache.subscribe(changed)
    cache.on_resource_version(moved)


def shown_wrongly(cache: WatchingCache, overlay: ReadYourWritesCache | None) -> str | None:
    """Return what a cache that has received every event shows wrongly."""
    state = cache.told, cache.resource_version >= cache.newest
    if cache.compared == state or cache.is_behind or cache.is_blind or not cache.synced:
        return None
    cache.compared = state
    there = dict(cache.there())
    wrong = _differing(there, {key: cache.get(key) for key in {*there, *cache.keys()}}, there)
    if wrong is None:
        wrong = _misfiled(there, lambda index, value: {*cache.indexed(index, value)}, is_by_node=_is_by_node(cache))
    if wrong is None and overlay is not None and cache.resource_version >= cache.newest:
        shown = {
            key: overlay.get(key) for key in {*there, *overlay.keys()} if key in there or not _is_new(overlay, key)
        }
        wrong = _differing(there, shown, dict(cache.there(everything=True)))
        wrong = wrong or _misfiled(there, lambda index, value: {*overlay.indexed(index, value)}, is_by_node=False)
    return wrong and f"{cache.resource.kind} {wrong}, and all is heard"


def _is_new(overlay: ReadYourWritesCache, key: Key) -> bool:
    """Whether a response has set the shown object since the cache moved: outside the selection there is nothing newer.

    The response itself may be older, because it was delayed.
    """
    record = overlay._expectations.get(key)
    return record is not None and record.until == overlay.resource_version + 1


def _is_by_node(cache: WatchingCache) -> bool:
    return cache.resource == VIRTUAL_MACHINE_INSTANCE and cache.has_index(BY_NODE)


def _differing(
    there: Mapping[Key, Json], shown: Mapping[Key, bytes | None], any_there: Mapping[Key, Json]
) -> str | None:
    """Return an object that is not shown as it is. any_there: what may be shown, selected or not."""
    for key in sorted(shown):
        raw = shown[key]
        if raw is None and key in there:
            return f"{key} is not shown"
        is_there = any_there.get(key)
        if raw is not None and (is_there is None or int(is_there["metadata"]["resourceVersion"]) != _version(raw)):
            version = "gone" if is_there is None else f"of {is_there['metadata']['resourceVersion']}"
            return f"{key} is shown as of {_version(raw)}, and is {version}"
    return None


def _misfiled(there: Mapping[Key, Json], read: Callable[[str, str], set[Key]], *, is_by_node: bool) -> str | None:
    for (index, value), keys in sorted(_filed(there, is_by_node=is_by_node).items()):
        missing = sorted(keys - read(index, value))
        if missing:
            return f"{missing[0]} is not found by {index} {value}"
    return None


def _filed(there: Mapping[Key, Json], *, is_by_node: bool) -> dict[tuple[str, str], set[Key]]:
    filed: dict[tuple[str, str], set[Key]] = {}
    for key, body in there.items():
        for place in _places(body, is_by_node=is_by_node):
            filed.setdefault(place, set()).add(key)
    return filed


def _places(body: Json, *, is_by_node: bool) -> Iterator[tuple[str, str]]:
    for owner in body["metadata"].get("ownerReferences") or ():
        yield "owner", owner["uid"]
    if is_by_node:
        yield BY_NODE, body.get("status", {}).get("nodeName", "")


def _version(raw: bytes) -> int:
    return int(_decoder.decode(raw).metadata.resource_version)
