# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evacuation controller: how it is built, and what enqueues a VMI that has to leave its node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    KUBEVIRT,
    NODE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.engine.ports import Cache
from controlplane.virt_controller.changes import BY_NODE, by_node, node_of, spec_of, status_of
from controlplane.virt_controller.controller import Controller, KeysOf, Watch
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.evacuation.reconciler import EvacuationReconciler
from controlplane.virt_controller.migration.index import BY_VMI, index_by_vmi, vmi_name_of

IsDrained = Callable[[bytes | None], bool]


def build(deps: Dependencies) -> EvacuationReconciler:
    return EvacuationReconciler(
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        nodes=deps.caches[NODE],
        migrations=deps.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
    )


def watches(deps: Dependencies, _reconciler: EvacuationReconciler) -> tuple[Watch, ...]:
    vmis, nodes = deps.caches[VIRTUAL_MACHINE_INSTANCE], deps.caches[NODE]
    is_drained = _drain_reader(deps.configuration)
    return (
        Watch(VIRTUAL_MACHINE_INSTANCE, _on_vmi(nodes, is_drained)),
        Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _on_migration),
        Watch(NODE, _on_node(vmis, is_drained)),
        Watch(KUBEVIRT, _on_configuration(vmis, nodes)),
    )


def _drain_reader(configuration: Callable[[], KubeVirtConfiguration]) -> IsDrained:
    return lambda raw: raw is not None and node_of(raw).is_drained(configuration().migrations.node_drain_taint_key)


def _on_vmi(nodes: Cache, is_drained: IsDrained) -> KeysOf:
    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        old, new = status_of(before), status_of(after)
        is_requested = old.evacuation_node_name or new.evacuation_node_name
        if is_requested or (new.node_name and is_drained(nodes.get(Key("", new.node_name)))):
            yield key

    return keys


def _on_migration(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    for name in {vmi_name_of(raw) for raw in (before, after) if raw is not None}:
        yield Key(key.namespace, name)


def _on_node(vmis: Cache, is_drained: IsDrained) -> KeysOf:
    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if is_drained(before) != is_drained(after):
            yield from list(vmis.indexed(BY_NODE, key.name))

    return keys


def _on_configuration(vmis: Cache, nodes: Cache) -> KeysOf:
    """Enqueue the VMIs of nodes with any taint: the key of the one that drains may be another now."""

    def keys(_key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if spec_of(before) == spec_of(after):
            return
        for node in list(nodes.keys()):
            raw = nodes.get(node)
            if raw is not None and node_of(raw).spec.taints:
                yield from list(vmis.indexed(BY_NODE, node.name))

    return keys


CONTROLLER = Controller(
    name="evacuation",
    build=build,
    watches=watches,
    indexes={
        VIRTUAL_MACHINE_INSTANCE: {BY_NODE: by_node},
        VIRTUAL_MACHINE_INSTANCE_MIGRATION: {BY_VMI: index_by_vmi},
    },
)
