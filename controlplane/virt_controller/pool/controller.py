# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool controller: how it is built, and what enqueues a pool."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_POOL, Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.controller import Controller, KeysOf, Watch, own_key
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.members.watch import set_of, sets_of_member
from controlplane.virt_controller.pool.member import fingerprint, read_member, read_run, run_fingerprint
from controlplane.virt_controller.pool.reconciler import PoolReconciler


def build(deps: Dependencies) -> PoolReconciler:
    return PoolReconciler(
        pools=deps.caches[VIRTUAL_MACHINE_POOL],
        vms=deps.caches[VIRTUAL_MACHINE],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
    )


def watches(deps: Dependencies, _reconciler: PoolReconciler) -> tuple[Watch, ...]:
    pools, vms = deps.caches[VIRTUAL_MACHINE_POOL], deps.caches[VIRTUAL_MACHINE]
    return (
        Watch(VIRTUAL_MACHINE_POOL, own_key),
        Watch(
            VIRTUAL_MACHINE,
            sets_of_member(pools, VIRTUAL_MACHINE_POOL, read_member, fingerprint, adopts=False),
        ),
        Watch(VIRTUAL_MACHINE_INSTANCE, _pool_of_vmi(pools, vms)),
    )


def _pool_of_vmi(pools: Cache, vms: Cache) -> KeysOf:
    """Enqueue the pool that controls the VM of a VMI after a change that a pool's decisions depend on."""

    def keys(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        vm = vms.get(key) if pools.keys() else None
        owners = [] if vm is None else set_of(VIRTUAL_MACHINE_POOL, key.namespace, read_member(vm))
        if owners:
            runs = (None if raw is None else read_run(raw) for raw in (before, after))
            old, new = (None if run is None else run_fingerprint(run) for run in runs)
            if old != new:
                yield owners[0]

    return keys


CONTROLLER = Controller(name="pool", build=build, watches=watches)
