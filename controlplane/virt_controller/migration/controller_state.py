# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server confirmed about a migration's VMI and Pods. A restart loses it; it is then confirmed again.

An entry is valid for one version of the migration: a confirmation from before its last change proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

GONE = "gone"


@dataclass(slots=True)
class ConfirmedReads:
    """Confirmations for one version of a migration."""

    version: str
    vmi: str = ""
    """UID and resourceVersion of its VMI, or GONE; "" if it was not read."""
    absent: set[str] = field(default_factory=set)
    """Names of Pods that do not exist."""


class ControllerState:
    """The confirmations of all migrations. An entry is dropped when its migration is gone."""

    def __init__(self) -> None:
        self._by_migration: dict[Key, ConfirmedReads] = {}
        self._target_created: dict[Key, str] = {}
        self._unschedulable_reported: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        self._by_migration.pop(key, None)
        self._target_created.pop(key, None)
        self._unschedulable_reported.pop(key, None)

    def of(self, migration: VirtualMachineInstanceMigration) -> ConfirmedReads:
        """Return the confirmations for the current version of the migration."""
        meta = migration.metadata
        key, version = meta.key, f"{meta.uid} {meta.resource_version}"
        reads = self._by_migration.get(key)
        if reads is None or reads.version != version:
            reads = self._by_migration[key] = ConfirmedReads(version)
        return reads

    def is_confirmed(self, migration: VirtualMachineInstanceMigration, vmi: VirtualMachineInstance | None) -> bool:
        """Tell whether the API server confirmed this version of the VMI, or its absence."""
        return self.of(migration).vmi == version_of(vmi)

    def note_target_created(self, migration: VirtualMachineInstanceMigration) -> None:
        """Note that the target Pod was created. It may be deleted before the cache shows it."""
        self._target_created[migration.metadata.key] = migration.metadata.uid

    def has_created_target(self, migration: VirtualMachineInstanceMigration) -> bool:
        return self._target_created.get(migration.metadata.key) == migration.metadata.uid

    def note_unschedulable_reported(self, migration: VirtualMachineInstanceMigration) -> None:
        """Note that an Event says that no node fits the target Pod."""
        self._unschedulable_reported[migration.metadata.key] = migration.metadata.uid

    def has_reported_unschedulable(self, migration: VirtualMachineInstanceMigration) -> bool:
        return self._unschedulable_reported.get(migration.metadata.key) == migration.metadata.uid


def version_of(vmi: VirtualMachineInstance | None) -> str:
    """Identify a version of a VMI."""
    return GONE if vmi is None else f"{vmi.metadata.uid} {vmi.metadata.resource_version}"
