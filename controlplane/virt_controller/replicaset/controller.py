# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set controller: how it is built, and what enqueues a replica set."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, Key
from controlplane.engine.ports import Cache
from controlplane.kube.cache import by_lack_of_controller
from controlplane.virt_controller.controller import Controller, KeysOf, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.replicaset.member import UNCONTROLLED, Member, fingerprint, read_member
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler


def build(deps: Dependencies) -> ReplicaSetReconciler:
    return ReplicaSetReconciler(
        replica_sets=deps.caches[VIRTUAL_MACHINE_INSTANCE_REPLICA_SET],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
    )


def watches(deps: Dependencies, _reconciler: ReplicaSetReconciler) -> tuple[Watch, ...]:
    replica_sets = deps.caches[VIRTUAL_MACHINE_INSTANCE_REPLICA_SET]
    return (
        Watch(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, own_key),
        Watch(VIRTUAL_MACHINE_INSTANCE, _sets_of_vmi(replica_sets)),
    )


def _sets_of_vmi(replica_sets: Cache) -> KeysOf:
    """Enqueue the set that controls a VMI. For a VMI without a controller, enqueue all sets of its namespace, which may
    adopt it.

    Only changes that a set's decisions depend on count: each VMI is written about ten times while it starts.
    """

    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        members = [None if raw is None else read_member(raw) for raw in (before, after)]
        old, new = (None if member is None else fingerprint(member) for member in members)
        if old != new:
            yield from {owner for member in members if member is not None for owner in sets(key.namespace, member)}

    def sets(namespace: str, member: Member) -> list[Key]:
        owner = controller_of(member.metadata)
        if owner is None:
            keys_of_sets = replica_sets.keys()
            return [key for key in keys_of_sets if key.namespace == namespace]
        return [Key(namespace, owner.name)] if owner.kind == VIRTUAL_MACHINE_INSTANCE_REPLICA_SET.kind else []

    return keys


CONTROLLER = Controller(
    name="replicaset",
    build=build,
    watches=watches,
    indexes={VIRTUAL_MACHINE_INSTANCE: {UNCONTROLLED: by_lack_of_controller}},
)
