# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workload-update controller: how it is built, and what enqueues the KubeVirt object."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.resources import (
    KUBEVIRT,
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.virt_controller.controller import Controller, Enqueue, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.migration.index import BY_VMI, index_by_vmi
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout
from controlplane.virt_controller.workload_update.reconciler import WorkloadUpdateReconciler

GATHER_SECONDS = 2.0
"""An upgrade changes many VMIs, migrations and nodes at once."""


def build(deps: Dependencies) -> WorkloadUpdateReconciler:
    return WorkloadUpdateReconciler(
        kubevirts=deps.caches[KUBEVIRT],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        pods=deps.caches[POD],
        migrations=deps.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION],
        unfinished=deps.unfinished,
        candidates=deps.candidates,
        rollout=HandlerRollout(deps.caches[NODE], deps.settings.image),
        api=deps.api,
        evict=deps.evict,
        clock=deps.clock,
        events=deps.events,
    )


def watches(deps: Dependencies, _reconciler: WorkloadUpdateReconciler) -> tuple[Watch, ...]:
    def on_migration(_key: Key, _before: bytes | None, _after: bytes | None) -> Iterator[Key]:
        if deps.candidates():
            yield from list(deps.caches[KUBEVIRT].keys())

    return Watch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, on_migration), Watch(KUBEVIRT, own_key)


def sources(deps: Dependencies, reconciler: WorkloadUpdateReconciler, enqueue: Enqueue) -> None:
    def enqueue_all() -> None:
        for key in list(deps.caches[KUBEVIRT].keys()):
            enqueue(key)

    deps.candidates.enqueue_by(enqueue_all)
    reconciler.rollout.enqueue_by(enqueue_all)


CONTROLLER = Controller(
    name="workload-update",
    build=build,
    watches=watches,
    sources=sources,
    delay=GATHER_SECONDS,
    indexes={VIRTUAL_MACHINE_INSTANCE_MIGRATION: {BY_VMI: index_by_vmi}},
)
