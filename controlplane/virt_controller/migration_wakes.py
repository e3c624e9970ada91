# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes which key, of migrations and of instances that are to leave their node. See wake.

VirtualMachineInstanceMigration changed -> it; it is over, or was and went -> all of its instance: the newest one
deletes the oldest
VirtualMachineInstanceMigration takes a place or takes none any more -> those whose turn it is then
VMI changed, or a Pod that it controls -> its migrations that are not over; VMI went -> all of its migrations
KubeVirt's configuration changed -> the migrations whose turn it is now
A migration went, or a VMI tells of one (first, or while it is under way), is given to another node, or a Pod of one
changed -> the orphans of the VMI
VMI that is to leave its node changed, a migration of it, or whether its Node is to be drained -> its evacuation
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from kubevirt_api.names import MIGRATION_JOB

from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.migration import FINAL, PENDING, UNSET
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.migration.index import BY_VMI, vmi_name_of
from controlplane.virt_controller.wake import BY_NODE, Wake, controlling_vmis, spec_of


class _Moving(Struct, frozen=True, kw_only=True):
    completed: bool = False
    failed: bool = False


class _Status(Struct, frozen=True, kw_only=True):
    phase: str = ""
    node_name: str = ""
    evacuation_node_name: str = ""
    migration_state: _Moving | None = None

    @property
    def is_moving(self) -> bool:
        moving = self.migration_state
        return moving is not None and not (moving.completed or moving.failed)


class _Seen(Struct, frozen=True, kw_only=True):
    status: _Status = _Status()


class _Object(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


_decoder = msgspec.json.Decoder(_Seen)
_object_decoder = msgspec.json.Decoder(_Object)
_node_decoder = msgspec.json.Decoder(Node)
NOTHING, NO_META = _Status(), ObjectMeta()
TAKES_NO_PLACE = frozenset({UNSET, PENDING, *FINAL})
"""Phases of migrations that count for no limit."""


def connect_migrations(
    *,
    migrations: Cache,
    vmis: Cache,
    pods: Cache,
    kubevirts: Cache,
    next_in_turn: Callable[[], list[Key]],
    wake: Wake,
) -> None:
    """Subscribe for the migration controller. migrations has the index BY_VMI."""

    def wake_next() -> None:
        for one in next_in_turn():
            wake(one)

    def on_migration(key: Key, before: bytes | None, after: bytes | None) -> None:
        wake(key)
        if (told := after or before) is not None and _is_over(after) != _is_over(before):
            for one in list(migrations.indexed(BY_VMI, f"{key.namespace}/{vmi_name_of(told)}")):
                wake(one)
        if after is None or _takes_a_place(before) != _takes_a_place(after):
            wake_next()

    def on_vmi(key: Key, _before: bytes | None, after: bytes | None) -> None:
        for one in list(migrations.indexed(BY_VMI, str(key))):
            if after is None or _read(migrations.get(one)).phase not in FINAL:
                wake(one)

    def on_pod(key: Key, before: bytes | None, after: bytes | None) -> None:
        for name in {name for raw in (before, after) if raw is not None for name in controlling_vmis(raw)}:
            on_vmi(Key(key.namespace, name), None, after or before)

    def on_kubevirt(_key: Key, before: bytes | None, after: bytes | None) -> None:
        if spec_of(before) != spec_of(after):
            wake_next()

    migrations.subscribe(on_migration)
    vmis.subscribe(on_vmi)
    pods.subscribe(on_pod)
    kubevirts.subscribe(on_kubevirt)


def connect_evacuations(*, migrations: Cache, vmis: Cache, nodes: Cache, wake: Wake) -> None:
    """Subscribe for the evacuation controller. vmis has the index BY_NODE."""

    def on_vmi(key: Key, before: bytes | None, after: bytes | None) -> None:
        was, now = _read(before), _read(after)
        is_marked = was.evacuation_node_name or now.evacuation_node_name
        if is_marked or (now.node_name and _is_drained(nodes.get(Key("", now.node_name)))):
            wake(key)

    def on_migration(key: Key, before: bytes | None, after: bytes | None) -> None:
        for name in {vmi_name_of(raw) for raw in (before, after) if raw is not None}:
            wake(Key(key.namespace, name))

    def on_node(key: Key, before: bytes | None, after: bytes | None) -> None:
        if _is_drained(before) != _is_drained(after):
            for vmi in list(vmis.indexed(BY_NODE, key.name)):
                wake(vmi)

    vmis.subscribe(on_vmi)
    migrations.subscribe(on_migration)
    nodes.subscribe(on_node)


def connect_orphans(*, migrations: Cache, vmis: Cache, pods: Cache, wake: Wake) -> None:
    """Subscribe for the orphan controller."""

    def on_migration(key: Key, before: bytes | None, after: bytes | None) -> None:
        is_gone = after is None or _meta(before).uid != _meta(after).uid  # a list tells of the next one of the name
        if before is not None and is_gone:
            wake(Key(key.namespace, vmi_name_of(before)))

    def on_vmi(key: Key, before: bytes | None, after: bytes | None) -> None:
        was, now = _read(before), _read(after)
        is_new = before is None and now.migration_state is not None
        has_moved = after is not None and was.node_name not in ("", now.node_name)
        if is_new or has_moved or was.is_moving or now.is_moving:
            wake(key)

    def on_pod(key: Key, before: bytes | None, after: bytes | None) -> None:
        for raw in (before, after):
            if raw is not None and MIGRATION_JOB in _meta(raw).labels:
                for name in controlling_vmis(raw):
                    wake(Key(key.namespace, name))

    migrations.subscribe(on_migration)
    vmis.subscribe(on_vmi)
    pods.subscribe(on_pod)


def _read(raw: bytes | None) -> _Status:
    return NOTHING if raw is None else _decoder.decode(raw).status


def _meta(raw: bytes | None) -> ObjectMeta:
    return NO_META if raw is None else _object_decoder.decode(raw).metadata


def _takes_a_place(raw: bytes | None) -> bool:
    return raw is not None and _read(raw).phase not in TAKES_NO_PLACE


def _is_over(raw: bytes | None) -> bool:
    return raw is not None and _read(raw).phase in FINAL


def _is_drained(raw: bytes | None) -> bool:
    return raw is not None and _node_decoder.decode(raw).is_drained
