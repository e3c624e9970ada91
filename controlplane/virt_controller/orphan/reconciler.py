# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The orphan controller: reads the caches into a World, writes. It decides nothing.

It recognizes a deletion without a request. Every object that refers to a migration was written after the migration. So
if the cache of migrations has reached that object's resourceVersion and lacks the migration, the migration was deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

from kubevirt_api.names import MIGRATION_TARGET_NODE

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi
from controlplane.api.objects.phase import is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import Conflict, NotFound, Unavailable
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.migration.hand_over import failed_state_patch
from controlplane.virt_controller.migration.index import BY_VMI, migrations_of
from controlplane.virt_controller.migration.world import DeleteTarget, FailMigration, RemoveTargetLabel, RequestAbort
from controlplane.virt_controller.orphan.decide import decide
from controlplane.virt_controller.orphan.world import Action, World, may_have_guest, referenced_migrations
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.world import is_controlled

log = logging.getLogger(__name__)


class OrphanReconciler:
    def __init__(
        self,
        *,
        vmis: ReadYourWritesCache,
        pods: ReadYourWritesCache,
        migrations: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
    ) -> None:
        """migrations has the index BY_VMI."""
        self._vmis = vmis
        self._pods = pods
        self._migrations = migrations
        self._api = api
        self._clock = clock
        self._events = events
        self._enqueue: Callable[[Key], None] = lambda _key: None
        self._unconfirmed: dict[Key, dict[str, int]] = {}
        """By VMI: UIDs of referenced migrations that the cache lacks, and the lowest version of an object that refers
        to them."""
        self._read = 0
        vmis.subscribe(self._forget)
        migrations.on_resource_version(self._on_resource_version)

    def enqueue_by(self, enqueue: Callable[[Key], None]) -> None:
        """Set the callback that enqueues VMIs when the cache of migrations has read far enough."""
        self._enqueue = enqueue

    def observe(self, key: Key) -> World | None:
        """Read the caches; None without an orphan. Unavailable until they are synced."""
        if not (self._vmis.synced and self._pods.synced and self._migrations.synced):
            raise Unavailable(f"cannot judge the remains of migrations of {key}: the caches are not synced yet")
        raw = self._vmis.get(key)
        try:
            vmi = None if raw is None else decode_vmi(raw)
        except DecodeError as error:
            log.warning("object skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
            return None
        if vmi is None or not vmi.status.active_pods or is_final(vmi.status.phase):
            self._unconfirmed.pop(key, None)  # the VMI controller cleans up after a run that is over
            return None
        spare = self._spare(vmi)
        keys = self._migrations.indexed(BY_VMI, str(key))
        gone = self._missing(key, referenced_migrations(vmi, spare), frozenset(map(self._migrations.uid, keys)))
        if not spare and not gone:
            return None
        return World(
            vmi=vmi,
            spare=spare,
            migrations=tuple(migrations_of(self._migrations, key, None)),
            gone=gone,
            deletes_sent=frozenset(pod.uid for pod in spare if self._pods.is_delete_sent(pod.metadata.key, pod.uid)),
        )

    def _missing(
        self, key: Key, referenced: Iterable[tuple[str, int]], existing: Collection[str | None]
    ) -> frozenset[str]:
        """Return the UIDs of deleted migrations. Later writes of an object that refers to one do not delay this."""
        before = self._unconfirmed.pop(key, {})
        unseen = {uid: min(version, before.get(uid, version)) for uid, version in referenced if uid not in existing}
        if unseen:
            self._unconfirmed[key] = unseen
        return frozenset(uid for uid, version in unseen.items() if version <= self._migrations.resource_version)

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, _world: World, _problem: RefusedStep[Action] | None) -> None:
        return None

    async def apply(self, world: World, action: Action) -> None:
        match action:
            case FailMigration():
                status = failed_state_patch(world.vmi, action.why, format_timestamp(self._clock.now()))
                await self._patch(world, {"status": status}, is_status=True)
            case RequestAbort():
                await self._patch(world, {"status": {"migrationState": {"abortRequested": True}}}, is_status=True)
            case DeleteTarget():
                await self._delete(world, action)
            case RemoveTargetLabel():
                await self._patch(world, {"metadata": {"labels": {MIGRATION_TARGET_NODE: None}}})

    async def write_status(self, _world: World, _status: None) -> None:
        raise AssertionError("there is no status of what is left")

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        reason = "FailedDelete" if isinstance(problem.step, DeleteTarget) else "FailedUpdate"
        self._events.record(Regarding.of(world.vmi), "Warning", reason, str(problem.error))

    async def _delete(self, world: World, action: DeleteTarget) -> None:
        """Delete the target Pod. Raises Conflict if the VMI, read from the API server, shows that the guest may be in
        it: the cached VMI may predate the hand-over.
        """
        try:
            vmi = decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, world.vmi.metadata.key))
        except NotFound as error:
            raise Conflict(
                f"cannot delete Pod {action.name}: its instance was deleted, which deletes the Pod"
            ) from error
        if may_have_guest(vmi, action.uid):
            raise Conflict(f"cannot delete Pod {action.name}: the guest may run in it")
        try:
            await self._api.delete(POD, Key(world.vmi.metadata.namespace, action.name), uid=action.uid)
        except NotFound:
            return
        message = f"Deleted pod {action.name}: {action.because}"
        self._events.record(Regarding.of(world.vmi), "Normal", "SuccessfulDelete", message, occurrence=action.uid)

    def _on_resource_version(self, resource_version: int) -> None:
        before, self._read = self._read, resource_version
        for key, unseen in list(self._unconfirmed.items()):
            if any(before < version <= resource_version for version in unseen.values()):
                self._enqueue(key)

    def _forget(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        if after is None:
            self._unconfirmed.pop(key, None)

    def _spare(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        keys, active = self._pods.indexed("owner", vmi.metadata.uid), vmi.status.active_pods
        launchers = (decode(raw, Pod) for raw in map(self._pods.get, sorted(keys)) if raw is not None)
        return tuple(pod for pod in launchers if is_controlled(pod, vmi) and pod.uid not in active)

    async def _patch(self, world: World, patch: dict[str, Any], *, is_status: bool = False) -> None:
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            world.vmi.metadata.key,
            patch,
            subresource="status" if is_status else "",
            resource_version=world.vmi.metadata.resource_version,
            uid=world.vmi.metadata.uid,
        )
