# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workload update controller: reads its state into a World; writes labels, migrations, evictions and a count.

The key is the KubeVirt object. A refusal for one VMI delays that VMI alone, and is reported on it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from kubevirt_api.names import OUTDATED_LAUNCHER, WORKLOAD_UPDATE_MIGRATION, WORKLOAD_UPDATE_REASON

from controlplane.api.objects.decode import decode_kubevirt, encode
from controlplane.api.objects.resources import (
    KUBEVIRT,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock, Json
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.migration.create_once import build_migration, create_once
from controlplane.virt_controller.migration.index import migrations_of
from controlplane.virt_controller.migration.scheduling import QueueEntry
from controlplane.virt_controller.migration.unfinished_migrations import UnfinishedMigrations
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.workload_update.candidates import CandidateCache
from controlplane.virt_controller.workload_update.controller_state import ControllerState
from controlplane.virt_controller.workload_update.decide import decide
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout
from controlplane.virt_controller.workload_update.instance_view import InstanceView
from controlplane.virt_controller.workload_update.status import StatusUpdate, derive_status
from controlplane.virt_controller.workload_update.world import (
    Action,
    BeginBatch,
    Candidate,
    CreateMigration,
    DropMigration,
    Evict,
    Label,
    World,
)

log = logging.getLogger(__name__)

REFUSED = (Forbidden, Invalid, Throttled, WebhookFailed)
"""Errors of requests that the API server refused: they changed nothing."""
EvictPod = Callable[[Key, str], Awaitable[None]]


class WorkloadUpdateReconciler:
    def __init__(
        self,
        *,
        kubevirts: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        pods: ReadYourWritesCache,
        migrations: ReadYourWritesCache,
        unfinished: UnfinishedMigrations,
        candidates: CandidateCache,
        rollout: HandlerRollout,
        api: Api,
        evict: EvictPod,
        clock: Clock,
        events: Events,
    ) -> None:
        """migrations has the index BY_VMI. evict: evicts a Pod by name and UID; raises ApiError."""
        self._kubevirts = kubevirts
        self._caches = (kubevirts, vmis, pods, migrations)
        self._migrations = migrations
        self._candidates = candidates
        self.rollout = rollout
        self._api = api
        self._evict = evict
        self._clock = clock
        self._events = events
        self._state = ControllerState(clock)
        self._unfinished = unfinished

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until they are synced: before that, absence proves nothing."""
        if not all(cache.synced for cache in self._caches):
            raise Unavailable(f"cannot update the workloads of {key}: the caches are not synced yet")
        raw = self._kubevirts.get(key)
        if raw is None or key != min(self._kubevirts.keys(), key=str):
            return None  # of several KubeVirt objects only the first one counts
        own_entries = [entry for entry in self._unfinished.entries() if _is_ours(entry)]
        instances = self._instances(own_entries)
        self._state.keep_only({instance.uid for instance in instances})
        begun = [entry for entry in own_entries if not entry.is_waiting or entry.can_begin]
        return World(
            kubevirt=decode_kubevirt(raw),
            candidates=tuple(map(self._candidate, instances)),
            under_way=len(begun),
            leaving=Counter(entry.source for entry in begun),
            now=self._clock.now(),
            outdated_nodes=self.rollout.outdated_nodes,
            announced=self._state.announced,
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, _problem: RefusedStep[Action] | None) -> StatusUpdate | None:
        return derive_status(world)

    async def apply(self, world: World, action: Action) -> None:
        if isinstance(action, BeginBatch):
            stamp = {"status": {"lastWorkloadEviction": format_timestamp(self._clock.now())}}
            await self._patch_kubevirt(world, stamp)
            return
        try:
            await self._apply_to_one(action)
        except (Conflict, NotFound):
            self._state.hold(action.instance.uid)  # frequent changes of one VMI must not delay others
        except REFUSED as error:
            self._state.refuse(action.instance.uid)
            reason = {Evict: "FailedEvict", CreateMigration: "FailedCreate"}.get(type(action), "FailedUpdate")
            self._record_event(action.instance, "Warning", reason, f"cannot move it to another launcher: {error}")
        else:
            self._state.accept(action.instance.uid)

    async def _apply_to_one(self, action: Label | CreateMigration | DropMigration | Evict) -> None:
        instance = action.instance
        match action:
            case Label():
                labels = {OUTDATED_LAUNCHER: "" if instance.is_outdated else None}
                patch = {"metadata": {"labels": labels}}
                await self._api.patch(
                    VIRTUAL_MACHINE_INSTANCE,
                    instance.key,
                    patch,
                    resource_version=instance.version,
                    uid=instance.uid,
                )
            case CreateMigration():
                await self._create(action)
                message = f"Created Migration {action.name} for automated workload update: {action.because}"
                self._record_event(instance, "Normal", "SuccessfulCreate", message, occurrence=action.name)
            case DropMigration():
                key = Key(instance.key.namespace, action.name)
                await self._api.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key, uid=action.uid)
            case Evict():
                await self._evict_one(instance)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: StatusUpdate) -> None:
        if status.status is not None:
            patch = {"status": merge_patch(encode(world.kubevirt.status), encode(status.status))}
            await self._patch_kubevirt(world, patch)
        for back_off in status.back_offs:
            self._state.note_announced(back_off.instance.uid, back_off.after)
            message = f"backing off: {back_off.failures} migration(s) in a row to another launcher failed"
            self._record_event(back_off.instance, "Warning", "MigrationBackoff", message, occurrence=back_off.after)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        log.warning("refused", extra={"key": world.kubevirt.metadata.name, "error": str(problem.error)})

    async def _create(self, action: CreateMigration) -> None:
        instance, key = action.instance, Key(action.instance.key.namespace, action.name)
        self._state.note_made(instance.uid, key)
        annotations = {WORKLOAD_UPDATE_MIGRATION: "", WORKLOAD_UPDATE_REASON: action.because}
        body = build_migration(instance.key, action.name, annotations, action.priority)
        await create_once(self._api, body, uid=instance.uid, version=instance.version)
        self._unfinished.note_created(key)

    async def _evict_one(self, instance: InstanceView) -> None:
        pod = self._candidates.pod_of(instance)
        if pod is None:
            raise Conflict(f"cannot evict VirtualMachineInstance {instance.key}: its Pod is not in the cache")
        await self._evict(Key(instance.key.namespace, pod.metadata.name), pod.uid)
        self._state.note_evicted(instance.uid, pod.uid)
        message = "Initiated eviction of VMI as part of automated workload update"
        self._record_event(instance, "Normal", "SuccessfulEvict", message, occurrence=pod.uid)

    async def _patch_kubevirt(self, world: World, patch: Json) -> None:
        meta = world.kubevirt.metadata
        await self._api.patch(
            KUBEVIRT,
            Key(meta.namespace, meta.name),
            patch,
            subresource="status",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    def _instances(self, own_entries: Sequence[QueueEntry]) -> list[InstanceView]:
        """List the VMIs to update, and those whose migrations may be obsolete."""
        by_key = {instance.key: instance for instance in self._candidates()}
        for key in {Key(entry.namespace, entry.migration.spec.vmi_name) for entry in own_entries} - by_key.keys():
            if (instance := self._candidates.instance_of(key)) is not None:
                by_key[key] = instance
        return list(by_key.values())

    def _candidate(self, instance: InstanceView) -> Candidate:
        state = self._state.of(instance.uid)
        return Candidate(
            instance=instance,
            migrations=tuple(migrations_of(self._migrations, instance.key, state.made)),
            refusals=state.refusals,
            backs_off_for=self._state.backs_off_for(instance.uid),
            is_served=self.rollout.has_reached(instance.node),
            is_evicted=bool(instance.pod) and state.evicted == instance.pod,
        )

    def _record_event(self, instance: InstanceView, kind: str, reason: str, text: str, *, occurrence: str = "") -> None:
        regarding = Regarding(VIRTUAL_MACHINE_INSTANCE, instance.key, instance.uid)
        self._events.record(regarding, "Normal" if kind == "Normal" else "Warning", reason, text, occurrence=occurrence)


def _is_ours(entry: QueueEntry) -> bool:
    """Tell whether this controller created a migration: users may set the annotation, but not the priority."""
    migration = entry.migration
    return WORKLOAD_UPDATE_MIGRATION in migration.metadata.annotations and bool(migration.spec.priority)
