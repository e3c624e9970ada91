# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI controller: how it is built, and what enqueues a VMI."""

from __future__ import annotations

from collections.abc import Iterator

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.phase import SCHEDULED
from controlplane.api.objects.resources import KUBEVIRT, NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.changes import (
    BY_NODE,
    BY_VMI_NAME,
    by_node,
    by_vmi_name,
    meta_of,
    node_of,
    schedulable_label,
    status_of,
    vmis_named,
    vmis_without_node_on_configuration,
)
from controlplane.virt_controller.controller import Controller, Enqueue, KeysOf, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.storage.claims import BY_CLAIM, claims_of_pod, claims_of_vmi
from controlplane.virt_controller.storage.watches import storage_watches, users_of_data_volumes
from controlplane.virt_controller.vmi.claim_watches import claim_watches
from controlplane.virt_controller.vmi.claim_writers import BY_GRANTED_CLAIM, claims_of_granted_vmi
from controlplane.virt_controller.vmi.failed_pings import failed_ping_recorder
from controlplane.virt_controller.vmi.reconciler import VmiReconciler


def build(deps: Dependencies) -> VmiReconciler:
    return VmiReconciler(
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        pods=deps.caches[POD],
        nodes=deps.caches[NODE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
        launcher_image=deps.settings.launcher_image,
        image_pull_secrets=deps.settings.image_pull_secrets,
        claims=deps.read_claims,
        data_volumes=deps.read_data_volumes,
        excluded_nodes=deps.quarantined,
    )


def watches(deps: Dependencies, reconciler: VmiReconciler) -> tuple[Watch, ...]:
    vmis = deps.caches[VIRTUAL_MACHINE_INSTANCE]
    return (
        Watch(VIRTUAL_MACHINE_INSTANCE, own_key),
        Watch(POD, _vmis_of_pod(reconciler)),
        Watch(NODE, _vmis_of_node(vmis)),
        # A Pod from the old configuration may wait for ever.
        Watch(KUBEVIRT, vmis_without_node_on_configuration(vmis)),
        *storage_watches(vmis),
        *claim_watches(vmis, deps.caches[POD]),
    )


def _vmis_of_pod(reconciler: VmiReconciler) -> KeysOf:
    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        for raw in (before, after):
            if raw is not None:
                yield from vmis_named(meta_of(raw))
        # The garbage collector removes the owner from Pods that it orphans: look the Pod's name up as well.
        vmi = reconciler.vmi_of(key)
        if vmi is not None:
            yield vmi

    return keys


def _vmis_of_node(vmis: Cache) -> KeysOf:
    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if _is_out_of_service(before) != _is_out_of_service(after):
            yield from list(vmis.indexed(BY_NODE, key.name))
        elif schedulable_label(before) != schedulable_label(after):
            # Running VMIs do not depend on it, and a node may have a hundred of them.
            for vmi in list(vmis.indexed(BY_NODE, key.name)):
                if status_of(vmis.get(vmi)).phase == SCHEDULED:
                    yield vmi
        if _is_quarantined(before) != _is_quarantined(after):
            # An unscheduled Pod may exclude a node that is available again.
            yield from list(vmis.indexed(BY_NODE, ""))

    return keys


def _is_out_of_service(raw: bytes | None) -> bool | None:
    """None: the Node does not exist."""
    return None if raw is None else node_of(raw).is_out_of_service


def _is_quarantined(raw: bytes | None) -> bool:
    return QUARANTINED in meta_of(raw).labels


def sources(deps: Dependencies, reconciler: VmiReconciler, enqueue: Enqueue) -> None:
    def on_pod_warning(raw: bytes) -> None:
        vmi = reconciler.note_event(raw)
        if vmi is not None:
            enqueue(vmi)

    deps.pod_warnings.subscribe(on_pod_warning)
    deps.pod_warnings.subscribe(
        failed_ping_recorder(deps.caches[VIRTUAL_MACHINE_INSTANCE], reconciler.vmi_of, deps.events)
    )
    deps.data_volume_support.subscribe(users_of_data_volumes(deps.caches[VIRTUAL_MACHINE_INSTANCE], enqueue))


CONTROLLER = Controller(
    name="vmi",
    build=build,
    watches=watches,
    sources=sources,
    indexes={
        VIRTUAL_MACHINE_INSTANCE: {BY_NODE: by_node, BY_CLAIM: claims_of_vmi, BY_GRANTED_CLAIM: claims_of_granted_vmi},
        POD: {BY_VMI_NAME: by_vmi_name, BY_CLAIM: claims_of_pod},
    },
)
