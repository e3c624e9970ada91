# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set controller: how it is built, and what enqueues a replica set."""

from __future__ import annotations

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET
from controlplane.kube.cache import by_lack_of_controller
from controlplane.virt_controller.controller import Controller, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.members.watch import sets_of_member
from controlplane.virt_controller.replicaset.member import UNCONTROLLED, fingerprint, read_member
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler

REPLICA_SET, VMI = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE


def build(deps: Dependencies) -> ReplicaSetReconciler:
    return ReplicaSetReconciler(
        replica_sets=deps.caches[REPLICA_SET],
        vmis=deps.caches[VMI],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
    )


def watches(deps: Dependencies, _reconciler: ReplicaSetReconciler) -> tuple[Watch, ...]:
    members = sets_of_member(deps.caches[REPLICA_SET], REPLICA_SET, read_member, fingerprint, adopts=True)
    return Watch(REPLICA_SET, own_key), Watch(VMI, members)


CONTROLLER = Controller(
    name="replicaset",
    build=build,
    watches=watches,
    indexes={VMI: {UNCONTROLLED: by_lack_of_controller}},
)
