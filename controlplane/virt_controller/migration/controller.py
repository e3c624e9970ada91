# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration controller: how it is built, and what enqueues a migration."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.migration import FINAL, PENDING, UNSET
from controlplane.api.objects.resources import (
    KUBEVIRT,
    MIGRATION_POLICY,
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.engine.ports import Cache
from controlplane.virt_controller.changes import controlling_vmis, spec_of, status_of
from controlplane.virt_controller.controller import Controller, Enqueue, KeysOf, Watch
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.migration.index import BY_VMI, index_by_vmi, vmi_name_of
from controlplane.virt_controller.migration.node_labels import other_nodes_reader
from controlplane.virt_controller.migration.reconciler import MigrationReconciler

UNCOUNTED = frozenset({UNSET, PENDING, *FINAL})
"""Phases of migrations that do not count against the limits of parallel migrations."""


def build(deps: Dependencies) -> MigrationReconciler:
    return MigrationReconciler(
        migrations=deps.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        pods=deps.caches[POD],
        policies=deps.caches[MIGRATION_POLICY],
        unfinished=deps.unfinished,
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
        launcher_image=deps.settings.launcher_image,
        image_pull_secrets=deps.settings.image_pull_secrets,
        claims=deps.read_claims,
        excluded_nodes=deps.quarantined,
        node_labels=deps.node_labels,
        other_nodes=other_nodes_reader(deps.caches[NODE]),
    )


def watches(deps: Dependencies, reconciler: MigrationReconciler) -> tuple[Watch, ...]:
    migrations = deps.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
    return (
        Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _on_migration(migrations, reconciler)),
        Watch(VIRTUAL_MACHINE_INSTANCE, _on_vmi(migrations)),
        Watch(POD, _on_pod(migrations)),
        Watch(KUBEVIRT, _on_configuration(reconciler)),
    )


def _on_migration(migrations: Cache, reconciler: MigrationReconciler) -> KeysOf:
    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        yield key
        raw = after or before
        if raw is not None and _is_final(after) != _is_final(before):
            # All migrations of the VMI: the newest final one deletes the oldest.
            yield from list(migrations.indexed(BY_VMI, f"{key.namespace}/{vmi_name_of(raw)}"))
        if after is None or _is_counted(before) != _is_counted(after):
            yield from reconciler.next_in_turn()

    return keys


def _on_vmi(migrations: Cache) -> KeysOf:
    def keys(key: Key, _before: bytes | None, after: bytes | None) -> Iterator[Key]:
        for migration in list(migrations.indexed(BY_VMI, str(key))):
            if after is None or status_of(migrations.get(migration)).phase not in FINAL:
                yield migration

    return keys


def _on_pod(migrations: Cache) -> KeysOf:
    on_vmi = _on_vmi(migrations)

    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        for vmi in {vmi for raw in (before, after) if raw is not None for vmi in controlling_vmis(key, raw)}:
            yield from on_vmi(vmi, None, after or before)

    return keys


def _on_configuration(reconciler: MigrationReconciler) -> KeysOf:
    def keys(_key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if spec_of(before) != spec_of(after):
            yield from reconciler.next_in_turn()

    return keys


def _is_counted(raw: bytes | None) -> bool:
    return raw is not None and status_of(raw).phase not in UNCOUNTED


def _is_final(raw: bytes | None) -> bool:
    return raw is not None and status_of(raw).phase in FINAL


def sources(_deps: Dependencies, reconciler: MigrationReconciler, enqueue: Enqueue) -> None:
    reconciler.enqueue_by(enqueue)


CONTROLLER = Controller(
    name="migration",
    build=build,
    watches=watches,
    sources=sources,
    indexes={VIRTUAL_MACHINE_INSTANCE_MIGRATION: {BY_VMI: index_by_vmi}},
)
