# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decodes a few fields of changed objects, for the watches of several controllers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from kubevirt_api.names import DOMAIN, SCHEDULABLE

from controlplane.api.objects.kubevirt_settings import settings_of
from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.ports import Cache
from controlplane.kube.cache import PartialObject

BY_NODE = "node"
"""Index of VMIs by status.nodeName; "" for VMIs without a node."""
BY_VMI_NAME = "vmi name"
"""Index of launcher Pods by the names of their VMIs, whichever UID these have."""


class _Spec(Struct, frozen=True, kw_only=True):
    spec: msgspec.Raw = msgspec.Raw(b"")


class _Meta(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class MigrationStateView(Struct, frozen=True, kw_only=True):
    completed: bool = False
    failed: bool = False


class StatusView(Struct, frozen=True, kw_only=True):
    """The status of a VMI or of a migration."""

    phase: str = ""
    attempt: int = 0
    active_pods: dict[str, str] = msgspec.field(default_factory=dict)
    node_name: str = ""
    evacuation_node_name: str = ""
    migration_state: MigrationStateView | None = None

    @property
    def is_migrating(self) -> bool:
        state = self.migration_state
        return state is not None and not (state.completed or state.failed)


class _Status(Struct, frozen=True, kw_only=True):
    status: StatusView = StatusView()


_spec_decoder = msgspec.json.Decoder(_Spec)
_meta_decoder = msgspec.json.Decoder(_Meta)
_status_decoder = msgspec.json.Decoder(_Status)
_node_decoder = msgspec.json.Decoder(Node)
NO_STATUS, NO_META = StatusView(), ObjectMeta()


def spec_of(raw: bytes | None) -> bytes | None:
    """Return the bytes of the spec."""
    return None if raw is None else bytes(_spec_decoder.decode(raw).spec)


def meta_of(raw: bytes | None) -> ObjectMeta:
    return NO_META if raw is None else _meta_decoder.decode(raw).metadata


def status_of(raw: bytes | None) -> StatusView:
    return NO_STATUS if raw is None else _status_decoder.decode(raw).status


def node_of(raw: bytes) -> Node:
    return _node_decoder.decode(raw)


def schedulable_label(raw: bytes | None) -> tuple[bool, str | None]:
    """Return whether a Node exists, and its label that allows VMIs to be scheduled to it."""
    return (False, None) if raw is None else (True, node_of(raw).metadata.labels.get(SCHEDULABLE))


def by_node(vmi: PartialObject) -> Iterable[str]:
    """Return the value of a VMI in BY_NODE."""
    return (status_of(vmi.raw).node_name,)


def controlling_vmis(key: Key, raw: bytes) -> list[Key]:
    """Return the VMIs that a Pod names as its controller."""
    owners = meta_of(raw).owner_references
    kind = VIRTUAL_MACHINE_INSTANCE.kind
    return [Key(key.namespace, owner.name) for owner in owners if owner.controller and owner.kind == kind]


def vmis_named(meta: ObjectMeta) -> list[Key]:
    """Return the VMIs that a Pod names: as its controller (the garbage collector may remove it) and as its domain."""
    names = {owner.name for owner in meta.owner_references if owner.kind == VIRTUAL_MACHINE_INSTANCE.kind}
    names |= {meta.annotations.get(DOMAIN, "")} - {""}
    return [Key(meta.namespace, name) for name in sorted(names)]


def by_vmi_name(pod: PartialObject) -> Iterable[str]:
    """Return the values of a Pod in BY_VMI_NAME."""
    return map(str, vmis_named(meta_of(pod.raw)))


def vmis_without_node_on_configuration(vmis: Cache) -> Callable[[Key, bytes | None, bytes | None], Iterator[Key]]:
    """Map a change of the configuration to the VMIs without a node. Other VMIs keep the former configuration."""

    def keys(_key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if _configuration_of(before) != _configuration_of(after):
            yield from list(vmis.indexed(BY_NODE, ""))

    return keys


def _configuration_of(raw: bytes | None) -> tuple[bytes | None, dict[str, str]]:
    """Return the spec of a KubeVirt object, and the annotations that override fields of it."""
    return spec_of(raw), settings_of(meta_of(raw).annotations)
