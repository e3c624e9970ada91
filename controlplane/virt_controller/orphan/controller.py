# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The orphan controller: how it is built, and what enqueues a VMI that may have remains of a deleted migration."""

from __future__ import annotations

from collections.abc import Iterator

from kubevirt_api.names import MIGRATION_JOB

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key
from controlplane.virt_controller.changes import controlling_vmis, meta_of, status_of
from controlplane.virt_controller.controller import Controller, Enqueue, Watch
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.migration.index import BY_VMI, index_by_vmi, vmi_name_of
from controlplane.virt_controller.orphan.reconciler import OrphanReconciler


def build(deps: Dependencies) -> OrphanReconciler:
    return OrphanReconciler(
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        pods=deps.caches[POD],
        migrations=deps.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
    )


def watches(_deps: Dependencies, _reconciler: OrphanReconciler) -> tuple[Watch, ...]:
    return (
        Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _on_migration),
        Watch(VIRTUAL_MACHINE_INSTANCE, _on_vmi),
        Watch(POD, _on_pod),
    )


def _on_migration(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    """Enqueue the VMI of a migration that is gone. After a relist the name may belong to another migration."""
    is_gone = after is None or meta_of(before).uid != meta_of(after).uid
    if before is not None and is_gone:
        yield Key(key.namespace, vmi_name_of(before))


def _on_vmi(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    """Enqueue a VMI that is migrating, has moved, or has a migration state when the watch first shows it."""
    old, new = status_of(before), status_of(after)
    is_new = before is None and new.migration_state is not None
    has_moved = after is not None and old.node_name not in ("", new.node_name)
    if is_new or has_moved or old.is_migrating or new.is_migrating:
        yield key


def _on_pod(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    for raw in (before, after):
        if raw is not None and MIGRATION_JOB in meta_of(raw).labels:
            yield from controlling_vmis(key, raw)


def sources(_deps: Dependencies, reconciler: OrphanReconciler, enqueue: Enqueue) -> None:
    reconciler.enqueue_by(enqueue)


CONTROLLER = Controller(
    name="orphan",
    build=build,
    watches=watches,
    sources=sources,
    indexes={VIRTUAL_MACHINE_INSTANCE_MIGRATION: {BY_VMI: index_by_vmi}},
)
