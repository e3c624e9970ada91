# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evacuation controller: reads the caches into a World, creates migrations. It decides nothing.

The key is a VMI. It creates migrations, and an Event for each back-off. It never writes the VMI.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kubevirt_api.names import EVACUATION_MIGRATION

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import (
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from controlplane.engine.errors import Unavailable
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.evacuation.decide import decide, derive_back_off
from controlplane.virt_controller.evacuation.world import Action, BackOff, World
from controlplane.virt_controller.migration.create_once import build_migration, create_once
from controlplane.virt_controller.migration.index import migrations_of
from controlplane.virt_controller.reporting.events import Events, Regarding

log = logging.getLogger(__name__)


class EvacuationReconciler:
    def __init__(
        self,
        *,
        vmis: ReadYourWritesCache,
        nodes: ReadYourWritesCache,
        migrations: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
    ) -> None:
        """migrations has the index BY_VMI."""
        self._vmis = vmis
        self._nodes = nodes
        self._migrations = migrations
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._announced: dict[Key, str] = {}
        self._created: dict[Key, Key] = {}
        """The last migration that this process created for a VMI: the index may lack it at first."""

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until they are synced: before that, absence proves nothing."""
        if not (self._vmis.synced and self._nodes.synced and self._migrations.synced):
            raise Unavailable(f"cannot judge whether {key} has to leave its node: the caches are not synced yet")
        raw = self._vmis.get(key)
        if raw is None:
            self._announced.pop(key, None)
            self._created.pop(key, None)
            return None
        try:
            vmi = decode_vmi(raw)
        except DecodeError as error:
            log.warning("object skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
            return None
        node = self._nodes.get(Key("", vmi.status.node_name))
        return World(
            vmi=vmi,
            node=None if node is None else decode(node, Node),
            migrations=tuple(migrations_of(self._migrations, key, self._created.get(key))),
            now=self._clock.now(),
            configuration=self._configuration(),
            announced=self._announced.get(key, ""),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> BackOff | None:
        return derive_back_off(world) if problem is None else None

    async def apply(self, world: World, action: Action) -> None:
        meta = world.vmi.metadata
        vmi = Key(meta.namespace, meta.name)
        # Record it before the create: until the index has the migration, the next name would be the same.
        self._created[vmi] = Key(meta.namespace, action.name)
        annotations = {EVACUATION_MIGRATION: world.vmi.status.node_name}
        body = build_migration(vmi, action.name, annotations, world.priority)
        await create_once(self._api, body, uid=meta.uid, version=meta.resource_version)

    async def write_status(self, world: World, status: BackOff) -> None:
        key = Key(world.vmi.metadata.namespace, world.vmi.metadata.name)
        self._announced[key] = status.after
        message = f"backing off: {status.failures} evacuation(s) in a row failed"
        self._events.record(_regarding(world), "Warning", "MigrationBackoff", message, occurrence=status.after)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        self._events.record(_regarding(world), "Warning", "FailedCreate", str(problem.error))


def _regarding(world: World) -> Regarding:
    meta = world.vmi.metadata
    return Regarding(VIRTUAL_MACHINE_INSTANCE, Key(meta.namespace, meta.name), meta.uid)
