# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server itself has said about a migration's instance and Pods. Lost at a restart: then it is asked again.

An answer is about one version of the migration: what was said before its last step says nothing of what came of that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

GONE = "gone"


@dataclass(slots=True)
class ConfirmedReads:
    """What was said of one version of a migration."""

    version: str
    vmi: str = ""
    """UID and resourceVersion of its instance, or GONE; "" when nobody asked."""
    absent: set[str] = field(default_factory=set)


class ControllerState:
    """By migration; forgotten with it."""

    def __init__(self) -> None:
        self._by_migration: dict[Key, ConfirmedReads] = {}
        self._made: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        self._by_migration.pop(key, None)
        self._made.pop(key, None)

    def of(self, migration: VirtualMachineInstanceMigration) -> ConfirmedReads:
        """Return what was said since the migration is as it is."""
        meta = migration.metadata
        key, version = Key(meta.namespace, meta.name), f"{meta.uid} {meta.resource_version}"
        memory = self._by_migration.get(key)
        if memory is None or memory.version != version:
            memory = self._by_migration[key] = ConfirmedReads(version)
        return memory

    def is_confirmed(self, migration: VirtualMachineInstanceMigration, vmi: VirtualMachineInstance | None) -> bool:
        """Tell whether the API server has said that the instance is so."""
        return self.of(migration).vmi == version_of(vmi)

    def note_target_created(self, migration: VirtualMachineInstanceMigration) -> None:
        """Its Pod is known to have been made; it may be gone before it is seen."""
        self._made[Key(migration.metadata.namespace, migration.metadata.name)] = migration.metadata.uid

    def has_created_target(self, migration: VirtualMachineInstanceMigration) -> bool:
        meta = migration.metadata
        return self._made.get(Key(meta.namespace, meta.name)) == meta.uid


def version_of(vmi: VirtualMachineInstance | None) -> str:
    """Name a state of an instance."""
    return GONE if vmi is None else f"{vmi.metadata.uid} {vmi.metadata.resource_version}"
