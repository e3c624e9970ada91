# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-controller process: the real reconcilers, the real queue and overlays, wired as the process wires them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    LEASE,
    MIGRATION_POLICY,
    NODE,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    Key,
    Resource,
)
from controlplane.engine.ports import Cache
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.virt_controller.migration.reconciler import MigrationReconciler
from controlplane.virt_controller.migration_wakes import connect_migrations, connect_orphans
from controlplane.virt_controller.node.reconciler import NodeReconciler
from controlplane.virt_controller.orphan.reconciler import OrphanReconciler
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler
from controlplane.virt_controller.reporting.events import Kind, Regarding
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_controller.wake import connect, connect_configuration, connect_nodes, connect_replica_sets
from tests.controlplane.simulation.answers import Asked, View
from tests.controlplane.simulation.cache import everything
from tests.controlplane.simulation.calls import CallingApi
from tests.controlplane.simulation.clock import WrongClock
from tests.controlplane.simulation.configuration import Configuration
from tests.controlplane.simulation.controller_promises import broken_promise
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.last_words import LastWords
from tests.controlplane.simulation.launch_duties import Launches
from tests.controlplane.simulation.listing import NAMESPACE
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.start_promises import owed_start
from tests.controlplane.simulation.store import Json, Store
from tests.controlplane.simulation.watched_queue import WatchedQueue
from tests.controlplane.simulation.watching import WatchingCache


@dataclass(slots=True)
class Told:
    """Events, remembered instead of written."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    occurrences: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """UIDs of VMs of whose requests one was dropped, and was said to be."""

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        del kind
        self.events.append((str(regarding.key), reason, message))
        self.occurrences.append((reason, occurrence))
        if reason == "RequestDropped":
            self.dropped.append(regarding.uid)

    def take_dropped(self) -> list[str]:
        taken, self.dropped = self.dropped, []
        return taken


ALIKE = {"host-model-cpu.node.kubevirt.io/EPYC": "true"}
"""All nodes have one processor."""


def real_reconcilers(**parts: Any) -> tuple[VmReconciler, VmiReconciler]:
    """Build what the process builds."""
    return vm_reconciler(**parts), vmi_reconciler(**parts)


def vm_reconciler(**parts: Any) -> VmReconciler:
    return VmReconciler(
        vms=parts["overlays"][VIRTUAL_MACHINE],
        vmis=parts["overlays"][VIRTUAL_MACHINE_INSTANCE],
        api=parts["api"],
        clock=parts["clock"],
        events=parts["events"],
        configuration=parts.get("configuration", KubeVirtConfiguration),
    )


def vmi_reconciler(**parts: Any) -> VmiReconciler:
    return VmiReconciler(
        vmis=parts["overlays"][VIRTUAL_MACHINE_INSTANCE],
        pods=parts["overlays"][POD],
        nodes=parts["overlays"][NODE],
        api=parts["api"],
        clock=parts["clock"],
        events=parts["events"],
        configuration=parts.get("configuration", KubeVirtConfiguration),
        launcher_image="launcher",
    )


class Controller(Process):
    role = "controller"

    def __init__(
        self,
        name: str,
        store: Store,
        clock: WrongClock,
        rng: random.Random,
        configuration: Configuration | None = None,
    ) -> None:
        super().__init__(name, store, clock)
        configuration = configuration or Configuration()
        watched = store.resources
        by_resource = {one: self.watch(one, _is_launcher if one == POD else everything) for one in watched}
        self.caches = tuple(by_resource.values())
        self.overlays = {
            resource: ReadYourWritesCache(cache) for resource, cache in by_resource.items() if resource != LEASE
        }
        self.told = Told()
        api = ReadYourWritesApi(CallingApi(store), self.overlays)
        vms, vmis = real_reconcilers(
            overlays=self.overlays, api=api, clock=clock, events=self.told, configuration=configuration
        )
        self._last_words = LastWords(self.overlays[POD])
        self._launches = Launches(self.seen, vmis, clock, self._last_words)
        complain = self.broken_promises.append
        self.work = {"vm": (WatchedQueue(rng, complain), vms), "vmi": (WatchedQueue(rng, complain), vmis)}
        connect(
            vms=self.overlays[VIRTUAL_MACHINE],
            vmis=self.overlays[VIRTUAL_MACHINE_INSTANCE],
            pods=self.overlays[POD],
            nodes=self.overlays[NODE],
            vmi_of=vmis.vmi_of,
            wake_vm=lambda key: self.work["vm"][0].add(key, clock.monotonic()),
            wake_vmi=lambda key: self.work["vmi"][0].add(key, clock.monotonic()),
        )
        connect_configuration(
            cast(Cache, configuration),
            self.overlays[VIRTUAL_MACHINE_INSTANCE],
            lambda key: None if self.is_dead else self.work["vmi"][0].add(key, clock.monotonic()),
        )
        if VIRTUAL_MACHINE_INSTANCE_REPLICA_SET in watched:
            self._keep_sets(rng, api, configuration)
        if VIRTUAL_MACHINE_INSTANCE_MIGRATION in watched:
            self._keep_migrations(rng, api, configuration)
        nodes = self._keep_nodes(rng, api, by_resource[LEASE])
        for cache in self.caches:
            cache.start()
        nodes.begin()

    def _keep_nodes(self, rng: random.Random, api: ReadYourWritesApi, leases: WatchingCache) -> NodeReconciler:
        nodes, queue = self.overlays[NODE], WatchedQueue(rng, self.broken_promises.append)
        reconciler = NodeReconciler(
            nodes=nodes, leases=leases, api=api, clock=self.clock, events=self.told, namespace=NAMESPACE
        )
        self.work["node"] = (queue, reconciler)
        connect_nodes(nodes, leases, lambda key: queue.add(key, self.clock.monotonic()))
        return reconciler

    def _keep_sets(self, rng: random.Random, api: ReadYourWritesApi, configuration: Configuration) -> None:
        sets, vmis = (self.overlays[one] for one in (VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE))
        reconciler = ReplicaSetReconciler(
            replica_sets=sets,
            vmis=vmis,
            api=api,
            clock=self.clock,
            events=self.told,
            configuration=configuration,
        )
        queue = WatchedQueue(rng, self.broken_promises.append)
        self.work["replicaset"] = (queue, reconciler)
        connect_replica_sets(replica_sets=sets, vmis=vmis, wake=lambda key: queue.add(key, self.clock.monotonic()))

    def _keep_migrations(self, rng: random.Random, api: ReadYourWritesApi, configuration: Configuration) -> None:
        migrations = self.overlays[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        vmis, pods = self.overlays[VIRTUAL_MACHINE_INSTANCE], self.overlays[POD]
        reconciler = MigrationReconciler(
            migrations=migrations,
            vmis=vmis,
            pods=pods,
            api=api,
            clock=self.clock,
            events=self.told,
            configuration=configuration,
            policies=self.overlays[MIGRATION_POLICY],
            launcher_image="launcher",
            node_labels=lambda _name: ALIKE,
        )
        queue = WatchedQueue(rng, self.broken_promises.append)
        self.work["migration"] = (queue, reconciler)

        def wake(key: Key) -> None:
            if not self.is_dead:
                queue.add(key, self.clock.monotonic())

        connect_migrations(
            migrations=migrations,
            vmis=vmis,
            pods=pods,
            kubevirts=cast(Cache, configuration),
            next_in_turn=reconciler.next_in_turn,
            wake=wake,
        )
        reconciler.enqueue_by(wake)
        left = WatchedQueue(rng, self.broken_promises.append)
        orphans = OrphanReconciler(
            vmis=vmis, pods=pods, migrations=migrations, api=api, clock=self.clock, events=self.told
        )
        self.work["orphan"] = (left, orphans)

        def wake_orphan(key: Key) -> None:
            if not self.is_dead:
                left.add(key, self.clock.monotonic())

        connect_orphans(migrations=migrations, vmis=vmis, pods=pods, wake=wake_orphan)
        orphans.enqueue_by(wake_orphan)

    def view(self, key: Key, since: int) -> View:
        vms, vmis = self.overlays[VIRTUAL_MACHINE], self.overlays[VIRTUAL_MACHINE_INSTANCE]
        return View(vms.get(key), vmis.get(key), since)

    def laid_over(self, cache: WatchingCache) -> ReadYourWritesCache | None:
        return self.overlays.get(cache.resource)

    def keys(self, work: str) -> Iterable[Key]:
        if work == "node":
            return sorted(self.overlays[NODE].keys())
        if work == "migration":
            return sorted(self.overlays[VIRTUAL_MACHINE_INSTANCE_MIGRATION].keys())
        known = (self.overlays[one].keys() for one in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE))
        return sorted({key for some in known for key in some})

    def seen(self, resource: Resource, key: Key) -> Json | None:
        raw = self.overlays[resource].get(key) if resource in self.overlays else None
        return None if raw is None else msgspec.json.decode(raw)

    def owes(self, work: str, key: Key) -> Owed | None:
        if work == "vmi":
            return self._launches.owed(self.seen(VIRTUAL_MACHINE_INSTANCE, key))
        if work != "vm":
            return None
        vm, vmi = (self.seen(one, key) for one in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE))
        return owed_start(vm, vmi, self.clock.now())

    def broken_promise(self, asked: Asked) -> str | None:
        return broken_promise(asked) or self._last_words.forgotten(asked)


def _is_launcher(body: Json) -> bool:
    return bool(body["metadata"].get("labels", {}).get(ROLE) == LAUNCHER_ROLE)
