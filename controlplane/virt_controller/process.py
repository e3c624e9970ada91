# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller's wiring: caches, overlays, reconcilers, runners, and what only the leader runs. No decision here.

Every replica keeps the caches filled, so that the next leader can act at once. Only the leader writes, and each of its
writes asks first whether it still leads.
"""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.data_volume import DEFINITION, is_served
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    DATA_VOLUME,
    EVENT,
    KUBEVIRT,
    LEASE,
    MIGRATION_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
    Resource,
)
from controlplane.api.version import VERSION
from controlplane.engine.backoff import BackOff
from controlplane.engine.ports import Clock
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from controlplane.http_server.health import Health
from controlplane.kube.cache import PartialObject, by_lack_of_controller, by_node
from controlplane.kube.client import Client, Selection
from controlplane.kube.eviction import evict
from controlplane.kube.leader import Leadership
from controlplane.kube.optional_watch import OptionalWatch
from controlplane.kube.uncached_watch import UncachedWatch
from controlplane.kube.watch import WatchCache
from controlplane.process.metrics import Metrics
from controlplane.virt_controller.certificates.run import run as keep_certificates
from controlplane.virt_controller.evacuation.reconciler import EvacuationReconciler
from controlplane.virt_controller.hotplug.cpu import cpu_migration_reason
from controlplane.virt_controller.hotplug.memory import memory_migration_reason
from controlplane.virt_controller.kubevirt.configuration import Configuration
from controlplane.virt_controller.kubevirt.reconciler import KubeVirtReconciler
from controlplane.virt_controller.metrics.machines import Machines
from controlplane.virt_controller.metrics.migrations import Migrations
from controlplane.virt_controller.metrics.transitions import Transitions
from controlplane.virt_controller.migration.index import BY_VMI, index_by_vmi
from controlplane.virt_controller.migration.node_labels import node_label_reader
from controlplane.virt_controller.migration.reconciler import MigrationReconciler
from controlplane.virt_controller.migration_wakes import connect_evacuations, connect_migrations, connect_orphans
from controlplane.virt_controller.node.reconciler import NodeReconciler
from controlplane.virt_controller.orphan.reconciler import OrphanReconciler
from controlplane.virt_controller.pool.reconciler import PoolReconciler
from controlplane.virt_controller.quarantine.quarantined_nodes import QuarantinedNodes
from controlplane.virt_controller.quarantine.reconciler import ALL_NODES, QuarantineReconciler
from controlplane.virt_controller.replicaset.member import UNCONTROLLED
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler
from controlplane.virt_controller.reporting.events import EventRecorder
from controlplane.virt_controller.settings import Settings
from controlplane.virt_controller.storage.claims import BY_CLAIM, claim_reader, claims_of_vm, claims_of_vmi
from controlplane.virt_controller.storage.data_volumes import data_volume_reader
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_controller.wake import (
    BY_NODE,
    connect,
    connect_claims,
    connect_configuration,
    connect_data_volumes,
    connect_nodes,
    connect_pools,
    connect_replica_sets,
)
from controlplane.virt_controller.workload_update.candidates import CandidateCache
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout
from controlplane.virt_controller.workload_update.reconciler import WorkloadUpdateReconciler
from controlplane.virt_controller.workload_update.wakes import GATHER_SECONDS, connect_workload_updates

log = logging.getLogger(__name__)

COMPONENT = "virt-controller"
WORKERS = 10
ABOUT_PODS = Selection(EVENT, field_selector="type=Warning,involvedObject.kind=Pod")
DEFINITION_ONLY = Selection(CUSTOM_RESOURCE_DEFINITION, field_selector=f"metadata.name={DEFINITION}")
INDEXES: dict[Resource, dict[str, Callable[[PartialObject], Iterable[str]]]] = {
    VIRTUAL_MACHINE: {BY_CLAIM: claims_of_vm},
    VIRTUAL_MACHINE_INSTANCE_MIGRATION: {BY_VMI: index_by_vmi},
    VIRTUAL_MACHINE_INSTANCE: {BY_NODE: by_node, UNCONTROLLED: by_lack_of_controller, BY_CLAIM: claims_of_vmi},
}


class Process:
    def __init__(self, settings: Settings, client: Client, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        identity = f"{settings.pod_name or COMPONENT}_{uuid.uuid4()}"
        self._leadership = Leadership(client, Key(settings.namespace, COMPONENT), identity, clock)
        self._client = client.guarded(self._leadership.require)
        selections = (
            Selection(VIRTUAL_MACHINE),
            Selection(VIRTUAL_MACHINE_INSTANCE),
            Selection(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET),
            Selection(VIRTUAL_MACHINE_INSTANCE_MIGRATION),
            Selection(VIRTUAL_MACHINE_POOL),
            Selection(MIGRATION_POLICY),
            Selection(POD, label_selector=f"{ROLE}={LAUNCHER_ROLE}"),
            Selection(NODE),
            Selection(PERSISTENT_VOLUME_CLAIM),
            Selection(KUBEVIRT, namespace=settings.namespace),
            Selection(LEASE, namespace=settings.namespace),
        )
        self._caches = {
            one.resource: WatchCache(client, one, clock, indexes=INDEXES.get(one.resource)) for one in selections
        }
        data_volumes = WatchCache(client, Selection(DATA_VOLUME), clock)
        definition = WatchCache(client, DEFINITION_ONLY, clock)
        self._data_volumes, self._optional = (
            data_volumes,
            OptionalWatch(definition, data_volumes, DEFINITION, is_served),
        )
        self._metrics = Metrics()
        self._events = EventRecorder(self._client, clock, component=COMPONENT, instance=settings.pod_name)
        self._runners = self._wire()
        self._health = Health(settings.port, self._metrics.registry, self._waiting_for, address=settings.address)
        self._offer_metrics()

    async def run(self) -> None:
        """Serve until cancelled. Raises LeadershipLostError (in a group) when the Lease could not be kept."""
        await self._health.start()
        try:
            async with asyncio.TaskGroup() as group:
                for cache in self._caches.values():
                    group.create_task(cache.run())
                group.create_task(self._optional.run())
                await self._leadership.run(self._lead)
        finally:
            await self._health.close()

    async def _lead(self) -> None:
        for cache in self._caches.values():
            await cache.wait_synced()  # before that, absence means nothing
        self._nodes.begin()
        self._quarantine.begin()
        async with asyncio.TaskGroup() as group:
            for runner in self._runners:
                group.create_task(runner.run())
            group.create_task(self._events.run())
            group.create_task(self._follower.run())
            group.create_task(keep_certificates(self._client, self._settings.namespace, self._clock))

    def _wire(self) -> tuple[Runner[Any, Any, Any], ...]:
        overlays = {resource: ReadYourWritesCache(cache) for resource, cache in self._caches.items()}
        overlays[DATA_VOLUME] = ReadYourWritesCache(self._data_volumes)
        data_volumes = data_volume_reader(overlays[DATA_VOLUME], lambda: not self._optional.is_absent)
        api = ReadYourWritesApi(self._client, overlays)
        configuration = Configuration(self._caches[KUBEVIRT])
        vms, vmis = overlays[VIRTUAL_MACHINE], overlays[VIRTUAL_MACHINE_INSTANCE]
        pods, nodes = overlays[POD], overlays[NODE]
        claims = self._caches[PERSISTENT_VOLUME_CLAIM]
        vm = VmReconciler(
            vms=vms,
            vmis=vmis,
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
            claims=claim_reader(claims),
            data_volumes=data_volumes,
        )
        self._marked = QuarantinedNodes(nodes)
        vmi = VmiReconciler(
            vmis=vmis,
            pods=pods,
            nodes=nodes,
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
            launcher_image=self._settings.launcher_image,
            image_pull_secrets=self._settings.image_pull_secrets,
            claims=claim_reader(claims),
            data_volumes=data_volumes,
            kept_from=self._marked,
        )
        replica_sets = overlays[VIRTUAL_MACHINE_INSTANCE_REPLICA_SET]
        replica_set = ReplicaSetReconciler(
            replica_sets=replica_sets,
            vmis=vmis,
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
        )
        pool = PoolReconciler(
            pools=overlays[VIRTUAL_MACHINE_POOL],
            vms=vms,
            vmis=vmis,
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
        )
        migrations = overlays[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        migration = MigrationReconciler(
            migrations=migrations,
            vmis=vmis,
            pods=pods,
            policies=overlays[MIGRATION_POLICY],
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
            launcher_image=self._settings.launcher_image,
            image_pull_secrets=self._settings.image_pull_secrets,
            claims=claim_reader(claims),
            kept_from=self._marked,
            node_labels=node_label_reader(nodes),
        )
        evacuation = EvacuationReconciler(
            vmis=vmis,
            nodes=nodes,
            migrations=migrations,
            api=api,
            clock=self._clock,
            events=self._events,
            configuration=configuration,
        )
        orphan = OrphanReconciler(
            vmis=vmis, pods=pods, migrations=migrations, api=api, clock=self._clock, events=self._events
        )
        self._quarantine = QuarantineReconciler(
            nodes=nodes, vmis=vmis, api=api, clock=self._clock, events=self._events, configuration=configuration
        )
        kubevirt = KubeVirtReconciler(kubevirts=overlays[KUBEVIRT], api=api, clock=self._clock, version=VERSION)
        self._nodes = NodeReconciler(
            nodes=nodes,
            leases=self._caches[LEASE],
            api=api,
            clock=self._clock,
            events=self._events,
            namespace=self._settings.namespace,
        )
        self._candidates = CandidateCache(
            vmis, pods, self._settings.launcher_image, reasons=(cpu_migration_reason, memory_migration_reason)
        )
        rollout = HandlerRollout(nodes, self._settings.image)
        updates = WorkloadUpdateReconciler(
            kubevirts=overlays[KUBEVIRT],
            vmis=vmis,
            pods=pods,
            migrations=migrations,
            unfinished=migration.unfinished,
            candidates=self._candidates,
            rollout=rollout,
            api=api,
            evict=partial(evict, self._client),
            clock=self._clock,
            events=self._events,
        )
        runners = (
            self._runner("vm", vm),
            self._runner("vmi", vmi),
            self._runner("kubevirt", kubevirt),
            self._runner("node", self._nodes),
            self._runner("replicaset", replica_set),
            self._runner("quarantine", self._quarantine),
            self._runner("migration", migration),
            self._runner("evacuation", evacuation),
            self._runner("pool", pool),
            self._runner("workload-update", updates),
            self._runner("orphan", orphan),
        )
        connect(
            vms=vms,
            vmis=vmis,
            pods=pods,
            nodes=nodes,
            vmi_of=vmi.vmi_of,
            wake_vm=runners[0].add,
            wake_vmi=runners[1].add,
        )
        self._follower = UncachedWatch(self._client, ABOUT_PODS, partial(_hear, vmi, runners[1].add), clock=self._clock)
        connect_claims(claims=claims, vms=vms, vmis=vmis, wake_vm=runners[0].add, wake_vmi=runners[1].add)
        changed = connect_data_volumes(
            data_volumes=overlays[DATA_VOLUME], vms=vms, vmis=vmis, wake_vm=runners[0].add, wake_vmi=runners[1].add
        )
        self._optional.on_change(changed)
        connect_nodes(nodes, self._caches[LEASE], runners[3].add)
        self._quarantine.enqueue_by(runners[5].add)
        connect_replica_sets(replica_sets=replica_sets, vmis=vmis, wake=runners[4].add)
        connect_migrations(
            migrations=migrations,
            vmis=vmis,
            pods=pods,
            kubevirts=overlays[KUBEVIRT],
            next_in_turn=migration.next_in_turn,
            wake=runners[6].add,
        )
        migration.enqueue_by(runners[6].add)
        connect_evacuations(migrations=migrations, vmis=vmis, nodes=nodes, wake=runners[7].add)
        orphan.enqueue_by(runners[10].add)
        connect_orphans(migrations=migrations, vmis=vmis, pods=pods, wake=runners[10].add)
        connect_pools(pools=overlays[VIRTUAL_MACHINE_POOL], vms=vms, vmis=vmis, wake=runners[8].add)
        connect_workload_updates(
            kubevirts=overlays[KUBEVIRT],
            migrations=migrations,
            candidates=self._candidates,
            rollout=rollout,
            enqueue=partial(runners[9].add, after=GATHER_SECONDS),
        )
        connect_configuration(overlays[KUBEVIRT], vmis, runners[1].add)
        overlays[KUBEVIRT].subscribe(lambda key, _before, _after: runners[2].add(key))
        overlays[KUBEVIRT].subscribe(lambda _key, _before, _after: runners[5].add(ALL_NODES))
        return runners

    def _runner(self, name: str, reconciler: Any) -> Runner[Any, Any, Any]:
        queue = WorkQueue(BackOff(random.random))
        return Runner(name, reconciler, queue, self._clock, limit=WORKERS, observed=self._metrics.observed)

    def _waiting_for(self) -> list[str]:
        return [resource.plural for resource, cache in self._caches.items() if not cache.synced]

    def _offer_metrics(self) -> None:
        gauge = self._metrics.gauge

        def is_leader() -> bool:
            return self._leadership.is_leader

        vms, vmis = self._caches[VIRTUAL_MACHINE], self._caches[VIRTUAL_MACHINE_INSTANCE]
        migrations = self._caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        self._metrics.registry.register(Machines(vms.all, vmis.all, is_leader, migrations.all))
        self._metrics.registry.register(Migrations(migrations.all, is_leader))
        vmis.subscribe(Transitions(self._metrics.registry, is_leader).changed)
        gauge(
            "kubevirt_virt_controller_leading_status",
            "Indication for an operating virt-controller.",
            lambda: float(is_leader()),
        )
        gauge(
            "kubevirt_virt_controller_ready_status",
            "Indication for a virt-controller that is ready to take the lead.",
            lambda: float(not self._waiting_for()),
        )
        gauge(
            "kubevirt_vmi_number_of_outdated",
            "Indication for the total number of VirtualMachineInstance workloads that are not running within the most "
            "up-to-date version of the virt-launcher environment.",
            lambda: float(self._candidates.outdated if is_leader() else 0),
        )
        gauge(
            "virtops_quarantined_nodes",
            "Nodes that get no new machines: runs did not begin there, or a person says so",
            lambda: float(len(self._marked())),
        )
        for resource, cache in self._caches.items():
            name = resource.plural
            gauge(f"virtops_cached_{name}", f"Known {resource.kind} objects", lambda cache=cache: len(cache))  # type: ignore[misc]
            gauge(
                f"virtops_cache_repaired_{name}",
                f"{resource.kind} objects that a watch had lost; should stay 0",
                lambda cache=cache: cache.counters.repaired,  # type: ignore[misc]
            )
            gauge(
                f"virtops_cache_unreadable_{name}",
                f"How often a {resource.kind} object could not be read and was passed over; should stay 0",
                lambda cache=cache: cache.counters.unreadable,  # type: ignore[misc]
            )


def _hear(vmis: VmiReconciler, wake: Callable[[Key], None], raw: bytes) -> None:
    key = vmis.note_event(raw)
    if key is not None:
        wake(key)
