# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local copy of one resource: raw JSON bytes by key, plus indexes. Implements engine.ports.Cache.

No I/O in here: watch.py feeds it. What is kept of an object is what the server sent, without what nobody
decides by (metadata.managedFields and kubectl's copy of the whole object, each up to half of it; a launcher's plan
with users' cloud-init in it; a Node's status) and always with apiVersion and kind (lists of built-in kinds leave them
out). Whoever wants fields decodes a typed view on demand. Nobody writes back what is missing here: writes are merge
patches of single fields.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from controlplane.api.launch_plan import PLAN_ANNOTATION
from controlplane.api.objects.resources import NODE, Key, Resource
from controlplane.kube import shallow
from controlplane.kube.unreadable import NOT_DECODED, UnreadableError

log = logging.getLogger(__name__)

Callback = Callable[[Key, bytes | None, bytes | None], None]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_NOT_KEPT = (LAST_APPLIED, PLAN_ANNOTATION)
NOT_KEPT: Mapping[Resource, frozenset[str]] = {
    NODE: frozenset({"status"}),  # images and heartbeats; a Node is looked up for its existence and its taints
}
"""Which fields of a kind's objects are not kept, beside those that are kept of none."""


MOST_LEVELS = 256
"""How deep an object may be nested that is kept. What is legitimate has about 20; whoever decodes, copies or compares
what is kept does so from deeper in the stack than we are, with more than one call per level: 1,000 is the end."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """What a peek shows of an ownerReference."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class PartialMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """What a peek shows of metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class _PeekObject(msgspec.Struct, frozen=True):
    metadata: PartialMetadata


@dataclass(frozen=True, slots=True)
class PartialObject:
    """The cheap view that index functions get: metadata decoded, the rest as bytes."""

    metadata: PartialMetadata
    raw: bytes


IndexFunction = Callable[[PartialObject], Iterable[str]]

_peek_decoder = msgspec.json.Decoder(_PeekObject)
_shallow_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_annotations_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_DIGITS = 20  # of a 64-bit number
_encoder = msgspec.json.Encoder()
_NOTHING: frozenset[Key] = frozenset()


def read_partial(raw: bytes) -> PartialObject:
    """Decode metadata only. Raises UnreadableError."""
    try:
        return PartialObject(_peek_decoder.decode(raw).metadata, raw)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error


def key_of(seen: PartialObject) -> Key:
    return Key(sys.intern(seen.metadata.namespace), seen.metadata.name)


def parse_resource_version(version: str) -> int:
    """Return a resourceVersion as a number; they are comparable within one resource. 0 for none."""
    return int(version) if version.isascii() and version.isdigit() and len(version) <= _DIGITS else 0


def trim(raw: bytes, resource: Resource) -> bytes:
    """Return what is kept of an object: the head of this file says what is not. Raises UnreadableError."""
    try:
        kept = _trim(raw, resource)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error
    if shallow.is_deeper(kept, MOST_LEVELS):
        raise UnreadableError(f"it is nested deeper than {MOST_LEVELS} levels")
    return kept


def _trim(raw: bytes, resource: Resource) -> bytes:
    parts = _shallow_decoder.decode(raw)
    for name in NOT_KEPT.get(resource, ()):
        parts.pop(name, None)
    metadata = _shallow_decoder.decode(parts["metadata"])
    metadata.pop("managedFields", None)
    annotations = _annotations_decoder.decode(metadata.pop("annotations", b"null")) or {}
    for name in ANNOTATIONS_NOT_KEPT:
        annotations.pop(name, None)
    if annotations:
        metadata["annotations"] = msgspec.Raw(_encoder.encode(annotations))
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    encoded = _encoder.encode({**parts, **identity, "metadata": metadata})
    # A copy of the exact size: the encoder's buffer grows by doubling, and what it gives back stays a
    # hole in the heap (measured: 3.3 KiB for a Pod of 6.3).
    return bytes(memoryview(encoded))


def by_owner(seen: PartialObject) -> Iterable[str]:
    """File an object under the UIDs of its owners."""
    return [owner.uid for owner in seen.metadata.owner_references or ()]


def by_label(name: str) -> IndexFunction:
    """Make an index of the values of one label."""

    def index(seen: PartialObject) -> Iterable[str]:
        value = (seen.metadata.labels or {}).get(name)
        return () if value is None else (value,)

    return index


class _PeekStatus(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _PeekPlaced(msgspec.Struct, frozen=True):
    status: _PeekStatus = _PeekStatus()


_placed_decoder = msgspec.json.Decoder(_PeekPlaced)


def by_node(seen: PartialObject) -> Iterable[str]:
    """File an object under status.nodeName, one without a node under ""."""
    return (_placed_decoder.decode(seen.raw).status.node_name,)


def by_lack_of_controller(seen: PartialObject) -> Iterable[str]:
    """File an object that no owner controls under its namespace."""
    owners = seen.metadata.owner_references or ()
    return () if any(one.controller for one in owners) else (seen.metadata.namespace,)


class Store:
    """The objects, the indexes, the subscribers."""

    def __init__(self, resource: Resource, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self.resource = resource
        self._synced = False
        self.resource_version = 0
        self._raw: dict[Key, bytes] = {}
        self._versions: dict[Key, str] = {}
        self._indexes: dict[str, IndexFunction] = {"owner": by_owner, **(indexes or {})}
        self._filed: dict[str, dict[str, set[Key]]] = {name: {} for name in self._indexes}
        self._places: dict[Key, tuple[tuple[str, str], ...]] = {}  # where each is filed: to unfile decodes nothing
        self._callbacks: list[Callback] = []
        self._followers: list[Callable[[int], None]] = []
        self._synced_callbacks: list[Callable[[], None]] = []

    @property
    def synced(self) -> bool:
        """Whether absence means something. Set by whoever feeds it."""
        return self._synced

    @synced.setter
    def synced(self, synced: bool) -> None:
        if synced is self._synced:
            return
        self._synced = synced
        for callback in self._synced_callbacks:
            try:
                callback()
            except Exception:
                log.exception("cache follower failed", extra={"resource": self.resource.plural})

    def on_synced(self, callback: Callable[[], None]) -> None:
        """Call back when `synced` has changed, either way."""
        self._synced_callbacks.append(callback)

    def get(self, key: Key) -> bytes | None:
        return self._raw.get(key)

    def keys(self) -> Collection[Key]:
        return list(self._raw)

    def all(self) -> tuple[bytes, ...]:
        """Return every object as it is now; in one step, so that another thread may ask."""
        return tuple(self._raw.values())

    def __len__(self) -> int:
        return len(self._raw)

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Return the keys filed under value. Raises KeyError for an index that was never made."""
        return frozenset(self._filed[index].get(value, _NOTHING))

    def subscribe(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        self._followers.append(callback)

    def move(self, resource_version: int) -> None:
        """Say that every change up to position was taken in. A position that was passed before changes nothing."""
        if resource_version <= self.resource_version:
            return
        self.resource_version = resource_version
        for callback in self._followers:
            try:
                callback(resource_version)
            except Exception:
                log.exception("cache follower failed", extra={"resource": self.resource.plural})

    def version(self, key: Key) -> str:
        """Return the resourceVersion we hold of an object, "" for none."""
        return self._versions.get(key, "")

    def put(self, raw: bytes) -> Key:
        """Take in an object as the server sent it; the same version again, or an older one, changes and tells nothing.

        Raises UnreadableError; what was held stays then as it is.
        """
        seen = read_partial(raw)
        key = key_of(seen)
        if seen.metadata.resource_version == self.version(key) or self._is_passed(key, seen):
            return key
        after = trim(raw, self.resource)
        before = self._raw.get(key)
        self._unfile(key)
        self._raw[key], self._versions[key] = after, seen.metadata.resource_version
        self._file(key, PartialObject(seen.metadata, after))
        self._tell(key, before, after)
        return key

    def remove(self, key: Key, last: bytes | None = None) -> None:
        """Forget an object that the server says is gone; tell of its last state if the server told it.

        last: as a DELETED event carries it: how the object ended, under the version of the deletion. One that is
        older than what is held is about an earlier object of this name. Raises UnreadableError about it; what was held
        stays then as it is.
        """
        held = self._raw.get(key)
        if held is None or (last is not None and self._is_passed(key, read_partial(last))):
            return
        ended = held if last is None else trim(last, self.resource)
        del self._raw[key], self._versions[key]
        self._unfile(key)
        self._tell(key, ended, None)

    def start_over(self) -> None:
        """Know nothing any more, and tell of it: absence means nothing until it is fed again."""
        self.synced = False
        for key in self.keys():
            self.remove(key)

    def _is_passed(self, key: Key, seen: PartialObject) -> bool:
        """Tell whether a later state than this one was taken in already."""
        return parse_resource_version(seen.metadata.resource_version) < parse_resource_version(self.version(key))

    def _file(self, key: Key, seen: PartialObject) -> None:
        places = tuple((name, value) for name, index in self._indexes.items() for value in _values(name, index, seen))
        for name, value in places:
            self._filed[name].setdefault(value, set()).add(key)
        if places:
            self._places[key] = places

    def _unfile(self, key: Key) -> None:
        for name, value in self._places.pop(key, ()):
            keys = self._filed[name][value]
            keys.discard(key)
            if not keys:
                del self._filed[name][value]

    def _tell(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        for callback in self._callbacks:
            try:
                callback(key, before, after)
            except Exception:
                # One reader's bug must not stop the cache that all others read.
                log.exception("cache subscriber failed", extra={"key": key, "resource": self.resource.plural})


def _values(name: str, index: IndexFunction, seen: PartialObject) -> Collection[str]:
    try:
        return set(index(seen))
    except Exception:
        log.exception("index function failed", extra={"index": name, "key": key_of(seen)})
        return ()
