# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local copy of one resource: raw JSON bytes by key, plus indexes. Implements engine.ports.Cache.

No I/O in here: watch.py feeds it. A cached object is what the server sent, without fields that no decision reads:
metadata.managedFields and kubectl's copy of the whole object (each up to half of it), a launcher's plan with users'
cloud-init in it, a Node's status. It always has apiVersion and kind, which lists of built-in kinds leave out. Readers
decode typed views on demand. Nothing writes these bytes back: writes are merge patches of single fields.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from controlplane.api.launch_plan import PLAN_ANNOTATION
from controlplane.api.objects.resources import NODE, Key, Resource
from controlplane.kube.decoding import MAX_LEVELS, NOT_DECODED, UnreadableError, is_deeper

log = logging.getLogger(__name__)

Callback = Callable[[Key, bytes | None, bytes | None], None]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
REMOVED_ANNOTATIONS = (LAST_APPLIED, PLAN_ANNOTATION)
REMOVED_FIELDS: Mapping[Resource, frozenset[str]] = {
    NODE: frozenset({"status"}),  # images and heartbeats; controllers read only a Node's existence and taints
}
"""Fields that are removed from the objects of one kind."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The fields of an ownerReference that indexes use."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class PartialMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of metadata that caches and indexes use."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: PartialMetadata


@dataclass(frozen=True, slots=True)
class PartialObject:
    """The input of index functions: metadata decoded, the whole object as bytes."""

    metadata: PartialMetadata
    raw: bytes


IndexFunction = Callable[[PartialObject], Iterable[str]]

_partial_decoder = msgspec.json.Decoder(_Object)
_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_annotations_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_DIGITS = 20  # of a 64-bit number
_encoder = msgspec.json.Encoder()
_NO_KEYS: frozenset[Key] = frozenset()


def read_partial(raw: bytes) -> PartialObject:
    """Decode metadata only. Raises UnreadableError."""
    try:
        return PartialObject(_partial_decoder.decode(raw).metadata, raw)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error


def key_of(obj: PartialObject) -> Key:
    return Key(sys.intern(obj.metadata.namespace), obj.metadata.name)


def parse_resource_version(version: str) -> int:
    """Return a resourceVersion as a number; 0 for any other text. Comparable within one resource."""
    return int(version) if version.isascii() and version.isdigit() and len(version) <= _DIGITS else 0


def trim(raw: bytes, resource: Resource) -> bytes:
    """Return an object without the fields that no decision reads. Raises UnreadableError."""
    try:
        trimmed = _trim(raw, resource)
    except NOT_DECODED as error:
        raise UnreadableError(str(error)) from error
    if is_deeper(trimmed, MAX_LEVELS):
        raise UnreadableError(f"it is nested deeper than {MAX_LEVELS} levels")
    return trimmed


def _trim(raw: bytes, resource: Resource) -> bytes:
    parts = _members_decoder.decode(raw)
    for name in REMOVED_FIELDS.get(resource, ()):
        parts.pop(name, None)
    metadata = _members_decoder.decode(parts["metadata"])
    metadata.pop("managedFields", None)
    annotations = _annotations_decoder.decode(metadata.pop("annotations", b"null")) or {}
    for name in REMOVED_ANNOTATIONS:
        annotations.pop(name, None)
    if annotations:
        metadata["annotations"] = msgspec.Raw(_encoder.encode(annotations))
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    encoded = _encoder.encode({**parts, **identity, "metadata": metadata})
    # A copy of the exact size: the encoder's buffer grows by doubling, and its unused end would stay a hole in the heap
    # (measured: 3.3 KiB for a Pod of 6.3).
    return bytes(memoryview(encoded))


def by_owner(obj: PartialObject) -> Iterable[str]:
    """Index by the UIDs of owners."""
    return [owner.uid for owner in obj.metadata.owner_references or ()]


def by_lack_of_controller(obj: PartialObject) -> Iterable[str]:
    """Index objects without a controlling owner by their namespace."""
    owners = obj.metadata.owner_references or ()
    return () if any(owner.controller for owner in owners) else (obj.metadata.namespace,)


class Store:
    """The objects, the indexes, the subscribers."""

    def __init__(self, resource: Resource, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self.resource = resource
        self._synced = False
        self.resource_version = 0
        self._raw: dict[Key, bytes] = {}
        self._versions: dict[Key, str] = {}
        self._indexes: dict[str, IndexFunction] = {"owner": by_owner, **(indexes or {})}
        self._keys_by_value: dict[str, dict[str, set[Key]]] = {name: {} for name in self._indexes}
        self._indexed: dict[Key, tuple[tuple[str, str], ...]] = {}  # so that a removal decodes nothing
        self._callbacks: list[Callback] = []
        self._version_callbacks: list[Callable[[int], None]] = []
        self._synced_callbacks: list[Callable[[], None]] = []

    @property
    def synced(self) -> bool:
        """Whether absence from this copy means absence from the cluster. Set by watch.py."""
        return self._synced

    @synced.setter
    def synced(self, synced: bool) -> None:
        if synced is self._synced:
            return
        self._synced = synced
        self._call(self._synced_callbacks)

    def on_synced(self, callback: Callable[[], None]) -> None:
        """Call back when `synced` has changed, either way."""
        self._synced_callbacks.append(callback)

    def get(self, key: Key) -> bytes | None:
        return self._raw.get(key)

    def keys(self) -> Collection[Key]:
        return list(self._raw)

    def all(self) -> tuple[bytes, ...]:
        """Return all objects. One step, so that another thread may call it."""
        return tuple(self._raw.values())

    def __len__(self) -> int:
        return len(self._raw)

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Return the keys indexed under value. Raises KeyError for an unknown index."""
        return frozenset(self._keys_by_value[index].get(value, _NO_KEYS))

    def subscribe(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        self._version_callbacks.append(callback)

    def move(self, resource_version: int) -> None:
        """Note that all changes up to this resourceVersion are stored. An older one changes nothing."""
        if resource_version <= self.resource_version:
            return
        self.resource_version = resource_version
        self._call(self._version_callbacks, resource_version)

    def version(self, key: Key) -> str:
        """Return the resourceVersion of the cached object, "" for none."""
        return self._versions.get(key, "")

    def put(self, raw: bytes) -> Key:
        """Store an object as the server sent it. The cached version or an older one changes nothing.

        Raises UnreadableError; then the cached object stays.
        """
        obj = read_partial(raw)
        key = key_of(obj)
        if obj.metadata.resource_version == self.version(key) or self._is_older(key, obj):
            return key
        after = trim(raw, self.resource)
        before = self._raw.get(key)
        self._remove_from_indexes(key)
        self._raw[key], self._versions[key] = after, obj.metadata.resource_version
        self._add_to_indexes(key, PartialObject(obj.metadata, after))
        self._notify(key, before, after)
        return key

    def remove(self, key: Key, last: bytes | None = None) -> None:
        """Remove an object that the server has deleted; subscribers get its last state.

        last: the object of the DELETED event, with the version of the deletion. An older version than the cached one
        is about an earlier object of this name. Raises UnreadableError for last; then the cached object stays.
        """
        cached = self._raw.get(key)
        if cached is None or (last is not None and self._is_older(key, read_partial(last))):
            return
        ended = cached if last is None else trim(last, self.resource)
        del self._raw[key], self._versions[key]
        self._remove_from_indexes(key)
        self._notify(key, ended, None)

    def start_over(self) -> None:
        """Remove everything, and report it to subscribers. Absence means nothing until the next list."""
        self.synced = False
        for key in self.keys():
            self.remove(key)

    def _is_older(self, key: Key, obj: PartialObject) -> bool:
        """Tell whether the cache has a later version than this one."""
        return parse_resource_version(obj.metadata.resource_version) < parse_resource_version(self.version(key))

    def _add_to_indexes(self, key: Key, obj: PartialObject) -> None:
        entries = tuple((name, value) for name, index in self._indexes.items() for value in _values(name, index, obj))
        for name, value in entries:
            self._keys_by_value[name].setdefault(value, set()).add(key)
        if entries:
            self._indexed[key] = entries

    def _remove_from_indexes(self, key: Key) -> None:
        for name, value in self._indexed.pop(key, ()):
            keys = self._keys_by_value[name][value]
            keys.discard(key)
            if not keys:
                del self._keys_by_value[name][value]

    def _notify(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        self._call(self._callbacks, key, before, after, about=key)

    def _call(self, callbacks: Iterable[Callable[..., None]], *arguments: object, about: Key | None = None) -> None:
        """Call subscribers. A bug in one of them must not stop the cache for the others.

        about: the object that has changed, for the log.
        """
        for callback in callbacks:
            try:
                callback(*arguments)
            except Exception:
                log.exception("cache subscriber failed", extra={"resource": self.resource.plural, "key": about})


def _values(name: str, index: IndexFunction, obj: PartialObject) -> Collection[str]:
    try:
        return set(index(obj))
    except Exception:
        log.exception("index function failed", extra={"index": name, "key": key_of(obj)})
        return ()
