# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM controller: how it is built, and what enqueues a VM."""

from __future__ import annotations

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from controlplane.virt_controller.controller import Controller, Enqueue, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.storage.claims import BY_CLAIM, claims_of_vm
from controlplane.virt_controller.storage.watches import storage_watches, users_of_data_volumes
from controlplane.virt_controller.vm.reconciler import VmReconciler


def build(deps: Dependencies) -> VmReconciler:
    return VmReconciler(
        vms=deps.caches[VIRTUAL_MACHINE],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
        claims=deps.read_claims,
        data_volumes=deps.read_data_volumes,
    )


def watches(deps: Dependencies, _reconciler: VmReconciler) -> tuple[Watch, ...]:
    return (
        Watch(VIRTUAL_MACHINE, own_key),
        # Foreign VMIs as well: the deletion of one frees the name.
        Watch(VIRTUAL_MACHINE_INSTANCE, own_key),
        *storage_watches(deps.caches[VIRTUAL_MACHINE]),
    )


def sources(deps: Dependencies, _reconciler: VmReconciler, enqueue: Enqueue) -> None:
    deps.data_volume_support.subscribe(users_of_data_volumes(deps.caches[VIRTUAL_MACHINE], enqueue))


CONTROLLER = Controller(
    name="vm",
    build=build,
    watches=watches,
    sources=sources,
    indexes={VIRTUAL_MACHINE: {BY_CLAIM: claims_of_vm}},
)
