# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of our kinds, one row each.

CRDs, admission, webhooks and the role's list of kinds are derived from it; see docs/api.md, "How to build a kind". Only
admission and schema code imports it. To read an object, its type in controlplane.api.objects is enough.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kubevirt_api import names
from msgspec import Struct

from controlplane.api.admission.kinds import kubevirt, migration, migration_policy, pool, replica_set, vm, vmi
from controlplane.api.admission.rules import Rules
from controlplane.api.objects.kubevirt import KubeVirt
from controlplane.api.objects.meta import Object
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.migration_policy import MigrationPolicy
from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Resource
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.schema.shape import part


class Column(NamedTuple):
    """A column of `kubectl get`. priority 1: only with -o wide."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


class Scale(NamedTuple):
    """Paths of the subresource `scale`, which `kubectl scale` and autoscalers use."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ".status.labelSelector"


AGE = Column("Age", ".metadata.creationTimestamp", "date")


def condition(kind: str) -> str:
    """Return the path of a condition's status."""
    return f".status.conditions[?(@.type=='{kind}')].status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: its types, its rules, and what its CRD has in addition to the schema."""

    root: type[Object]
    """With `spec` and `status`; its docstring describes the kind, its `resource` names it."""
    rules: Rules
    short_names: tuple[str, ...]
    columns: tuple[Column, ...] = (AGE,)
    selectable: tuple[str, ...] = ()
    """Paths that field selectors may use."""
    versions: tuple[str, ...] = (names.VERSION, names.OLD_VERSION)
    """The first is stored; the others are served with the same schema, deprecated."""
    scale: Scale | None = None
    """None: such objects cannot be scaled."""
    label: str = names.ROLE
    """Name of the label that the CRD has."""
    is_users: bool = True
    """Users with a role may create and change such objects. Otherwise they only read them."""
    own_role: str = ""
    """ClusterRole for creating such objects, if admin and edit do not allow it. They and view allow reading."""

    @property
    def resource(self) -> Resource:
        return self.root.resource

    @property
    def spec(self) -> type[Struct]:
        spec, _unused = part(self.root, "spec")
        return spec

    @property
    def status(self) -> type[Struct]:
        status, _unused = part(self.root, "status")
        return status

    @property
    def needs_spec(self) -> bool:
        _unused, is_required = part(self.root, "spec")
        return is_required

    @property
    def description(self) -> str:
        return inspect.cleandoc(self.root.__doc__ or "")


KINDS: tuple[Kind, ...] = (
    Kind(
        root=VirtualMachine,
        rules=vm.RULES,
        short_names=("vm", "vms"),
        columns=(AGE, Column("Status", ".status.printableStatus"), Column("Ready", condition("Ready"))),
    ),
    Kind(
        root=VirtualMachineInstance,
        rules=vmi.RULES,
        short_names=("vmi", "vmis"),
        columns=(
            AGE,
            Column("Phase", ".status.phase"),
            Column("IP", ".status.interfaces[0].ipAddress"),
            Column("NodeName", ".status.nodeName"),
            Column("Ready", condition("Ready")),
            Column("Live-Migratable", condition("LiveMigratable"), priority=1),
            Column("Paused", condition("Paused"), priority=1),
        ),
        selectable=(".status.phase", ".status.nodeName", ".status.migrationState.targetNode"),
    ),
    Kind(
        root=VirtualMachineInstanceReplicaSet,
        rules=replica_set.RULES,
        short_names=("vmirs", "vmirss"),
        columns=(
            Column("Desired", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
            AGE,
        ),
        scale=Scale(),
    ),
    Kind(
        root=VirtualMachineInstanceMigration,
        rules=migration.RULES,
        short_names=("vmim", "vmims"),
        columns=(Column("Phase", ".status.phase"), Column("VMI", ".spec.vmiName"), AGE),
        own_role="kubevirt.io:migrate",
    ),
    Kind(
        root=VirtualMachinePool,
        rules=pool.RULES,
        short_names=("vmpool", "vmpools"),
        columns=(
            Column("Desired", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
            AGE,
        ),
        versions=(names.POOL_VERSION, names.OLD_POOL_VERSION),
        scale=Scale(),
    ),
    Kind(
        root=MigrationPolicy,
        rules=migration_policy.RULES,
        short_names=(),
        versions=(names.POLICY_VERSION,),
        is_users=False,
    ),
    Kind(
        root=KubeVirt,
        rules=kubevirt.RULES,
        short_names=("kv", "kvs"),
        columns=(AGE, Column("Phase", ".status.phase")),
        label="operator.kubevirt.io",
        is_users=False,
    ),
)


def by_name(kinds: tuple[Kind, ...]) -> Mapping[str, Kind]:
    """Return the rows by kind."""
    return {kind.resource.kind: kind for kind in kinds}
