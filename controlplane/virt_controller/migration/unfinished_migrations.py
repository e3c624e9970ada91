# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of unfinished migrations, to apply limits without reading all finished ones. No I/O.

Own writes count at once. Decoded objects are cached and decoded again when their bytes change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.migration.scheduling import QueueEntry, is_over
from controlplane.virt_controller.migration.world import can_move, target_name

_Known = tuple[bytes, VirtualMachineInstanceMigration]
_Instance = tuple[bytes, VirtualMachineInstance]


class UnfinishedMigrations:
    def __init__(
        self, migrations: ReadYourWritesCache, vmis: ReadYourWritesCache, has_pod: Callable[[Key], bool]
    ) -> None:
        """has_pod: tells whether the cache has a Pod."""
        self._migrations = migrations
        self._vmis = vmis
        self._has_pod = has_pod
        self._known: dict[Key, _Known] = {}
        self._instances: dict[Key, _Instance] = {}
        self._refused: set[Key] = set()
        migrations.subscribe(self._changed)

    def note_refused(self, key: Key) -> None:
        """Note that a migration's target Pod was refused. It is retried, and blocks no other migration meanwhile."""
        self._refused.add(key)

    def note_created(self, key: Key) -> None:
        """Count a migration that this process created, before the watch reports it."""
        self._changed(key, None, self._migrations.get(key))

    def entries(self) -> Iterator[QueueEntry]:
        """List the unfinished migrations."""
        for key in list(self._known):
            migration = self._read(key)
            if migration is not None:
                yield self._entry(key, migration)

    def _entry(self, key: Key, migration: VirtualMachineInstanceMigration) -> QueueEntry:
        meta, vmi_key = migration.metadata, Key(key.namespace, migration.spec.vmi_name)
        vmi = self._instance(vmi_key)
        if vmi is None:
            return QueueEntry(migration, "", can_begin=False)
        state = vmi.status.migration_state
        is_this_one = state is not None and state.migration_uid == meta.uid
        is_in_another = state is not None and state.is_under_way and not is_this_one
        name = target_name(vmi.metadata.name, vmi.metadata.uid, meta.uid)
        return QueueEntry(
            migration,
            state.source_node if state is not None and is_this_one else vmi.status.node_name,
            # A cancelled migration does not begin: it must not take another one's turn.
            can_begin=can_move(vmi)
            and not is_in_another
            and key not in self._refused
            and meta.deletion_timestamp is None,
            has_pod=self._has_pod(Key(key.namespace, name)),
        )

    def _read(self, key: Key) -> VirtualMachineInstanceMigration | None:
        """Return a migration; None if it is finished or gone."""
        raw = self._migrations.get(key)
        if raw is None:
            return None
        cached = self._known[key]
        if raw is not cached[0]:
            try:
                cached = self._known[key] = raw, decode(raw, VirtualMachineInstanceMigration)
            except DecodeError:
                return None
        return None if is_over(cached[1]) else cached[1]

    def _instance(self, key: Key) -> VirtualMachineInstance | None:
        raw, cached = self._vmis.get(key), self._instances.get(key)
        if raw is None:
            self._instances.pop(key, None)
            return None
        if cached is None or raw is not cached[0]:
            try:
                cached = self._instances[key] = raw, decode_vmi(raw)
            except DecodeError:
                return None
        return cached[1]

    def _changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        try:
            migration = None if after is None else decode(after, VirtualMachineInstanceMigration)
        except DecodeError:
            migration = None
        if after is not None and migration is not None and not is_over(migration):
            self._known[key] = after, migration
            return
        self._refused.discard(key)
        former = self._known.pop(key, None)
        if former is not None:
            self._instances.pop(Key(key.namespace, former[1].spec.vmi_name), None)
