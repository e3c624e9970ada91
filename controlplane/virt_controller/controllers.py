# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All controllers of virt-controller, and the indexes that they need. README.md says how to add one."""

from __future__ import annotations

from controlplane.api.objects.resources import Resource
from controlplane.kube.cache import IndexFunction
from controlplane.virt_controller.controller import AnyController
from controlplane.virt_controller.evacuation.controller import CONTROLLER as EVACUATION
from controlplane.virt_controller.kubevirt.controller import CONTROLLER as KUBEVIRT
from controlplane.virt_controller.migration.controller import CONTROLLER as MIGRATION
from controlplane.virt_controller.node.controller import CONTROLLER as NODE
from controlplane.virt_controller.orphan.controller import CONTROLLER as ORPHAN
from controlplane.virt_controller.pool.controller import CONTROLLER as POOL
from controlplane.virt_controller.quarantine.controller import CONTROLLER as QUARANTINE
from controlplane.virt_controller.replicaset.controller import CONTROLLER as REPLICA_SET
from controlplane.virt_controller.vm.controller import CONTROLLER as VM
from controlplane.virt_controller.vmi.controller import CONTROLLER as VMI
from controlplane.virt_controller.workload_update.controller import CONTROLLER as WORKLOAD_UPDATE

CONTROLLERS: tuple[AnyController, ...] = (
    VM,
    VMI,
    KUBEVIRT,
    NODE,
    REPLICA_SET,
    QUARANTINE,
    MIGRATION,
    EVACUATION,
    POOL,
    WORKLOAD_UPDATE,
    ORPHAN,
)


def _all_indexes() -> dict[Resource, dict[str, IndexFunction]]:
    indexes: dict[Resource, dict[str, IndexFunction]] = {}
    for controller in CONTROLLERS:
        for resource, by_name in controller.indexes.items():
            indexes.setdefault(resource, {}).update(by_name)
    return indexes


INDEXES = _all_indexes()
