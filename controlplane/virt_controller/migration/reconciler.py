# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration controller: reads the caches into a World, passes actions to the writer. It decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import PENDING, SCHEDULING, VirtualMachineInstanceMigration
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationStatus as Status
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.engine.errors import Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.migration.apply import MigrationWriter, key_of, regarding
from controlplane.virt_controller.migration.controller_state import ControllerState
from controlplane.virt_controller.migration.decide import decide
from controlplane.virt_controller.migration.events import end_events, failure_reason, refusal_message
from controlplane.virt_controller.migration.index import BY_VMI
from controlplane.virt_controller.migration.policy import Policies
from controlplane.virt_controller.migration.scheduling import blocks_others, may_begin, next_to_begin, should_yield
from controlplane.virt_controller.migration.status import derive_status
from controlplane.virt_controller.migration.target_pod import NO_LABELS, build_target_pod
from controlplane.virt_controller.migration.unfinished_migrations import UnfinishedMigrations
from controlplane.virt_controller.migration.world import Action, CreateTarget, World, is_unowned_target
from controlplane.virt_controller.reporting.events import Events
from controlplane.virt_controller.storage.claims import ReadClaims, no_claims
from controlplane.virt_controller.vmi.world import is_controlled

log = logging.getLogger(__name__)


class MigrationReconciler:
    def __init__(
        self,
        *,
        migrations: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        pods: ReadYourWritesCache,
        policies: ReadYourWritesCache,
        unfinished: UnfinishedMigrations,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
        image_pull_secrets: tuple[str, ...] = (),
        claims: ReadClaims = no_claims,
        excluded_nodes: Callable[[], frozenset[str]] = frozenset,
        node_labels: Callable[[str], Mapping[str, str]] = lambda _name: NO_LABELS,
        other_nodes: Callable[[str], Iterable[Mapping[str, str]]] = lambda _name: (),
    ) -> None:
        """migrations has the index BY_VMI. excluded_nodes: returns the nodes without new machines. node_labels: returns
        the labels of a node. other_nodes: returns those of each other node."""
        self._migrations = migrations
        self._vmis = vmis
        self._pods = pods
        self._policies = Policies(policies, api)
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._image_pull_secrets = image_pull_secrets
        self._read_claims = claims
        self._excluded_nodes = excluded_nodes
        self._node_labels = node_labels
        self._enqueue: Callable[[Key], None] = lambda _key: None
        self._state = ControllerState()
        self._unfinished = unfinished
        self._writer = MigrationWriter(
            vmis=vmis,
            policies=self._policies,
            api=api,
            clock=clock,
            events=events,
            state=self._state,
            unfinished=unfinished,
            build=self._build_target,
            other_nodes=other_nodes,
        )

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until all of them are synced: before that, absence proves nothing."""
        if not all(cache.synced for cache in (self._migrations, self._vmis, self._pods, self._policies)):
            raise Unavailable(f"cannot judge VirtualMachineInstanceMigration {key}: the caches are not synced yet")
        migration = self._read(key)
        if migration is None:
            self._state.forget(key)
            return None
        uid, configuration, reads = migration.metadata.uid, self._configuration(), self._state.of(migration)
        vmi = self._read_vmi(Key(key.namespace, migration.spec.vmi_name))
        world = World(
            migration=migration,
            vmi=vmi,
            launchers=() if vmi is None else self._launchers(vmi),
            may_begin=migration.status.phase == PENDING
            and may_begin(uid, self._unfinished.entries(), configuration.migrations),
            others=tuple(
                migration
                for migration in self._of(key.namespace, migration.spec.vmi_name)
                if migration.metadata.uid != uid
                and not self._migrations.is_delete_sent(key_of(migration), migration.metadata.uid)
            ),
            now=self._clock.now(),
            configuration=configuration,
            has_created_target=self._state.has_created_target(migration),
            is_unschedulable_reported=self._state.has_reported_unschedulable(migration),
            is_vmi_confirmed=self._state.is_confirmed(migration, vmi),
            absent=frozenset(reads.absent),
        )
        return self._with_pods(world)

    def _with_pods(self, world: World) -> World:
        """Add the target Pod, by name, and the source Pod, by the name and UID in the hand-over."""
        last_state = world.last_state
        namespace = world.migration.metadata.namespace
        name = world.target_pod or ("" if last_state is None else last_state.target_pod)
        named_pod = self._pod(Key(namespace, name)) if name else None
        target = (
            named_pod
            if named_pod is not None and world.vmi is not None and is_controlled(named_pod, world.vmi)
            else None
        )
        unowned_target = named_pod if named_pod is not None and is_unowned_target(named_pod, world.uid) else None
        source = None if last_state is None else self._pod(Key(namespace, last_state.source_pod))
        if source is not None and (last_state is None or source.uid != last_state.source_pod_uid):
            source = None
        pods = [pod for pod in (target, unowned_target, source) if pod is not None]
        sent = {pod.uid for pod in pods if self._pods.is_delete_sent(_pod_key(pod), pod.uid)}
        if self._migrations.is_delete_sent(key_of(world.migration), world.uid):
            sent.add(world.uid)
        completed = replace(
            world, target=target, unowned_target=unowned_target, source=source, deletes_sent=frozenset(sent)
        )
        if target is None or target.is_up or completed.migration.status.phase != SCHEDULING:
            return completed
        entries, settings = list(self._unfinished.entries()), completed.configuration.migrations
        return replace(
            completed,
            blocks_others=completed.is_unschedulable and blocks_others(completed.uid, entries, settings),
            should_yield=should_yield(completed.uid, entries, settings),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> Status | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        await self._writer.apply(world, action)

    async def write_status(self, world: World, status: Status) -> None:
        old = world.migration
        await self._writer.patch(world, {"status": merge_patch(encode(old.status), encode(status))}, is_status=True)
        for event in end_events(world, status):
            self._events.record(regarding(world), event.kind, event.reason, event.message, occurrence=world.uid)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        if isinstance(problem.step, CreateTarget):
            self._unfinished.note_refused(key_of(world.migration))
            for key in self.next_in_turn():
                self._enqueue(key)
        self._events.record(regarding(world), "Warning", failure_reason(problem), refusal_message(problem))

    def enqueue_by(self, enqueue: Callable[[Key], None]) -> None:
        """Set the callback for migrations that may begin because another one's target Pod was refused."""
        self._enqueue = enqueue

    def next_in_turn(self) -> list[Key]:
        """Return the waiting migrations that may begin now."""
        entries = next_to_begin(self._unfinished.entries(), self._configuration().migrations)
        return [key_of(entry.migration) for entry in entries]

    def _build_target(self, world: World) -> dict[str, Any]:
        """Build the target Pod. Raises ValueError."""
        vmi, namespace = world.vmi, world.migration.metadata.namespace
        return build_target_pod(
            world,
            image=self._launcher_image,
            image_pull_secrets=self._image_pull_secrets,
            claims=NO_CLAIMS if vmi is None else self._read_claims(namespace, vmi.spec.volumes),
            excluded_nodes=self._excluded_nodes(),
            source_labels=NO_LABELS if vmi is None else self._node_labels(vmi.status.node_name),
        )

    def _launchers(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        keys = self._pods.indexed("owner", vmi.metadata.uid)
        return tuple(decode(raw, Pod) for raw in map(self._pods.get, sorted(keys)) if raw is not None)

    def _of(self, namespace: str, vmi_name: str) -> list[VirtualMachineInstanceMigration]:
        keys = self._migrations.indexed(BY_VMI, f"{namespace}/{vmi_name}")
        return [migration for migration in map(self._read, sorted(keys)) if migration is not None]

    def _pod(self, key: Key) -> Pod | None:
        raw = self._pods.get(key)
        return None if raw is None else decode(raw, Pod)

    def _read(self, key: Key) -> VirtualMachineInstanceMigration | None:
        raw = self._migrations.get(key)
        try:
            return None if raw is None else decode(raw, VirtualMachineInstanceMigration)
        except DecodeError as error:
            log.warning("object skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
            return None

    def _read_vmi(self, key: Key) -> VirtualMachineInstance | None:
        raw = self._vmis.get(key)
        try:
            return None if raw is None else decode_vmi(raw)
        except DecodeError as error:
            raise Unavailable(f"cannot judge the migrations of {key}: {error}") from error


def _pod_key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)
