# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of unfinished migrations, to apply limits without reading all finished ones. No I/O.

It sees this process's own writes at once. It caches decoded objects, and decodes them again when their bytes change.
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

_CachedMigration = tuple[bytes, VirtualMachineInstanceMigration]
_CachedVmi = tuple[bytes, VirtualMachineInstance]


class UnfinishedMigrations:
    def __init__(
        self, migrations: ReadYourWritesCache, vmis: ReadYourWritesCache, has_pod: Callable[[Key], bool]
    ) -> None:
        """has_pod: tells whether the cache has a Pod."""
        self._migrations = migrations
        self._vmis = vmis
        self._has_pod = has_pod
        self._cached_migrations: dict[Key, _CachedMigration] = {}
        self._cached_vmis: dict[Key, _CachedVmi] = {}
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
        for key in list(self._cached_migrations):
            migration = self._read(key)
            if migration is not None:
                yield self._entry(key, migration)

    def _entry(self, key: Key, migration: VirtualMachineInstanceMigration) -> QueueEntry:
        meta, vmi_key = migration.metadata, Key(key.namespace, migration.spec.vmi_name)
        vmi = self._instance(vmi_key)
        if vmi is None:
            return QueueEntry(migration, "", can_begin=False)
        state = vmi.status.migration_state
        is_own = state is not None and state.migration_uid == meta.uid
        is_in_another = state is not None and state.is_under_way and not is_own
        name = target_name(vmi.metadata.name, vmi.metadata.uid, meta.uid)
        return QueueEntry(
            migration,
            state.source_node if state is not None and is_own else vmi.status.node_name,
            # A cancelled migration does not begin: it must not delay another one.
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
        cached = self._cached_migrations[key]
        if raw is not cached[0]:
            try:
                cached = self._cached_migrations[key] = raw, decode(raw, VirtualMachineInstanceMigration)
            except DecodeError:
                return None
        return None if is_over(cached[1]) else cached[1]

    def _instance(self, key: Key) -> VirtualMachineInstance | None:
        raw, cached = self._vmis.get(key), self._cached_vmis.get(key)
        if raw is None:
            self._cached_vmis.pop(key, None)
            return None
        if cached is None or raw is not cached[0]:
            try:
                cached = self._cached_vmis[key] = raw, decode_vmi(raw)
            except DecodeError:
                return None
        return cached[1]

    def _changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        try:
            migration = None if after is None else decode(after, VirtualMachineInstanceMigration)
        except DecodeError:
            migration = None
        if after is not None and migration is not None and not is_over(migration):
            self._cached_migrations[key] = after, migration
            return
        self._refused.discard(key)
        former = self._cached_migrations.pop(key, None)
        if former is not None:
            self._cached_vmis.pop(Key(key.namespace, former[1].spec.vmi_name), None)
