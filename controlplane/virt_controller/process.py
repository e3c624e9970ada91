# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-controller's process: caches, controllers, their runners, and the leader's tasks. It decides nothing.

Every replica keeps the caches filled, so that the next leader can act at once. Only the leader writes: each write
checks the leadership first. A controller's wiring is in its folder's controller.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
import uuid
from datetime import timedelta
from functools import partial
from typing import Any, Final

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
)
from controlplane.api.version import KUBEVIRT_VERSION
from controlplane.engine.backoff import BackOff
from controlplane.engine.ports import Clock
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from controlplane.http_server.health import Health, tls_context
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.kube.client import Client, Selection
from controlplane.kube.configuration import Configuration
from controlplane.kube.eviction import evict
from controlplane.kube.leader import Leadership
from controlplane.kube.optional_watch import OptionalWatch
from controlplane.kube.uncached_watch import UncachedWatch
from controlplane.kube.watch import WatchCache
from controlplane.process.log_level import LogLevel
from controlplane.process.metrics import Metrics
from controlplane.tls.certificates import Subject, make_self_signed
from controlplane.tls.policy import tls_policy
from controlplane.virt_controller.certificates.run import run as keep_certificates
from controlplane.virt_controller.controllers import CONTROLLERS, INDEXES
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.metrics.machines import Machines
from controlplane.virt_controller.metrics.migrations import Migrations
from controlplane.virt_controller.metrics.transitions import MigrationTransitions, Transitions
from controlplane.virt_controller.migration.node_labels import node_label_reader
from controlplane.virt_controller.quarantine.quarantined_nodes import QuarantinedNodes
from controlplane.virt_controller.reporting.events import EventRecorder
from controlplane.virt_controller.settings import Settings
from controlplane.virt_controller.storage.claims import claim_reader
from controlplane.virt_controller.storage.data_volumes import data_volume_reader

log = logging.getLogger(__name__)

COMPONENT: Final = "virt-controller"
WORKERS = 10
HEALTH_PAIR_LIFE = timedelta(days=3650)
"""Nobody verifies it."""
POD_WARNINGS = Selection(EVENT, field_selector="type=Warning,involvedObject.kind=Pod")
DATA_VOLUME_DEFINITION = Selection(CUSTOM_RESOURCE_DEFINITION, field_selector=f"metadata.name={DEFINITION}")
READ_ONLY = (LEASE, PERSISTENT_VOLUME_CLAIM)


def _selections(namespace: str) -> tuple[Selection, ...]:
    """Return the kinds that are listed and watched. The role's RBAC rules allow exactly the process's watches."""
    return (
        Selection(VIRTUAL_MACHINE),
        Selection(VIRTUAL_MACHINE_INSTANCE),
        Selection(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET),
        Selection(VIRTUAL_MACHINE_INSTANCE_MIGRATION),
        Selection(VIRTUAL_MACHINE_POOL),
        Selection(MIGRATION_POLICY),
        Selection(POD, label_selector=f"{ROLE}={LAUNCHER_ROLE}"),
        Selection(NODE),
        Selection(PERSISTENT_VOLUME_CLAIM),
        Selection(KUBEVIRT, namespace=namespace),
        Selection(LEASE, namespace=namespace),
    )


def _health_tls(namespace: str) -> ssl.SSLContext:
    """Return a context with a pair of this process. Probes begin before the control plane has a CA."""
    subject = Subject(COMPONENT, "server", (f"kubevirt-prometheus-metrics.{namespace}.svc",))
    pair = make_self_signed(subject, time.time(), HEALTH_PAIR_LIFE)
    return tls_context(pair.certificate, pair.key)


class Process:
    def __init__(self, settings: Settings, client: Client, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        identity = f"{settings.pod_name or COMPONENT}_{uuid.uuid4()}"
        self._leadership = Leadership(client, Key(settings.namespace, COMPONENT), identity, clock)
        self._client = client.guarded(self._leadership.require)
        self._caches = {
            selection.resource: WatchCache(client, selection, clock, indexes=INDEXES.get(selection.resource))
            for selection in _selections(settings.namespace)
        }
        self._data_volumes = WatchCache(client, Selection(DATA_VOLUME), clock)
        definition = WatchCache(client, DATA_VOLUME_DEFINITION, clock)
        self._optional = OptionalWatch(definition, self._data_volumes, DEFINITION, is_served)
        self._metrics = Metrics()
        self._events = EventRecorder(self._client, clock, component=COMPONENT, instance=settings.pod_name)
        self._configuration = Configuration(self._caches[KUBEVIRT])
        self._configuration.subscribe(LogLevel(COMPONENT, settings.log_level, settings.node))
        self._deps = self._dependencies()
        self._follower = UncachedWatch(self._client, POD_WARNINGS, self._deps.pod_warnings, clock=clock)
        self._optional.on_change(self._deps.data_volume_support)
        self._reconcilers = [controller.build(self._deps) for controller in CONTROLLERS]
        self._runners = self._connect()
        self._health = Health(
            settings.port,
            MetricsPage(self._metrics.registry),
            self._unsynced,
            _health_tls(settings.namespace),
            config_version=lambda: self._configuration.version,
            address=settings.address,
        )
        self._configuration.subscribe(lambda new: self._health.use_policy(tls_policy(new.tls_configuration)))
        self._register_metrics()
        self._register_cache_metrics()

    async def run(self) -> None:
        """Serve until cancelled. Raises LeadershipLostError (in a group) if the Lease could not be renewed."""
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
            await cache.wait_synced()  # before that, absence proves nothing
        for controller, reconciler in zip(CONTROLLERS, self._reconcilers, strict=True):
            if controller.begin is not None:
                controller.begin(reconciler)
        async with asyncio.TaskGroup() as group:
            for runner in self._runners:
                group.create_task(runner.run())
            group.create_task(self._events.run())
            group.create_task(self._follower.run())
            group.create_task(
                keep_certificates(self._client, self._settings.namespace, self._clock, self._configuration)
            )

    def _dependencies(self) -> Dependencies:
        caches = {resource: ReadYourWritesCache(cache) for resource, cache in self._caches.items()}
        caches[DATA_VOLUME] = ReadYourWritesCache(self._data_volumes)
        nodes = caches[NODE]
        return Dependencies(
            caches=caches,
            read_only={resource: self._caches[resource] for resource in READ_ONLY},
            api=ReadYourWritesApi(self._client, caches),
            clock=self._clock,
            events=self._events,
            settings=self._settings,
            configuration=self._configuration,
            quarantined=QuarantinedNodes(nodes),
            node_labels=node_label_reader(nodes),
            read_claims=claim_reader(self._caches[PERSISTENT_VOLUME_CLAIM]),
            read_data_volumes=data_volume_reader(caches[DATA_VOLUME], lambda: not self._optional.is_absent),
            evict=partial(evict, self._client),
        )

    def _connect(self) -> list[Runner[Any, Any, Any]]:
        """Build the runners and subscribe the sources of keys. Every reconciler has subscribed to its caches before."""
        runners = []
        for controller, reconciler in zip(CONTROLLERS, self._reconcilers, strict=True):
            queue = WorkQueue(BackOff(random.random))
            observed = self._metrics.observed
            runner = Runner(controller.name, reconciler, queue, self._clock, limit=WORKERS, observed=observed)
            self._metrics.watch_load(controller.name, runner.load)
            enqueue = partial(runner.add, after=controller.delay)
            controller.connect(self._deps, reconciler, enqueue, is_watched=lambda _resource: True)
            runners.append(runner)
        return runners

    def _unsynced(self) -> list[str]:
        return [resource.plural for resource, cache in self._caches.items() if not cache.synced]

    def _is_leader(self) -> bool:
        return self._leadership.is_leader

    def _register_metrics(self) -> None:
        gauge, registry, is_leader = self._metrics.gauge, self._metrics.registry, self._is_leader
        vms, vmis = self._caches[VIRTUAL_MACHINE], self._caches[VIRTUAL_MACHINE_INSTANCE]
        migrations = self._caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        configuration = self._configuration
        registry.register(
            Machines(vms.all, vmis.all, is_leader, migrations.all, lambda: configuration().eviction_strategy)
        )
        registry.register(Migrations(migrations.all, is_leader))
        vmis.subscribe(Transitions(registry, is_leader).changed)
        migrations.subscribe(MigrationTransitions(registry, is_leader).changed)
        self._metrics.version(KUBEVIRT_VERSION)
        gauge(
            "kubevirt_configuration_emulation_enabled",
            "Indicates whether the Software Emulation is enabled in the configuration.",
            lambda: float(configuration().developer_configuration.use_emulation),
        )
        gauge(
            "kubevirt_virt_controller_leading_status",
            "Indication for an operating virt-controller.",
            lambda: float(is_leader()),
        )
        gauge(
            "kubevirt_virt_controller_ready_status",
            "Indication for a virt-controller that is ready to become the leader.",
            lambda: float(not self._unsynced()),
        )
        gauge(
            "kubevirt_vmi_number_of_outdated",
            "Indication for the total number of VirtualMachineInstance workloads that are not running within the most "
            "up-to-date version of the virt-launcher environment.",
            lambda: float(self._deps.candidates.outdated if is_leader() else 0),
        )
        gauge(
            "virtops_quarantined_nodes",
            "Nodes to which no new VMIs are scheduled, because runs failed there or a user labelled them",
            lambda: float(len(self._deps.quarantined())),
        )

    def _register_cache_metrics(self) -> None:
        gauge = self._metrics.gauge
        for resource, cache in self._caches.items():
            name, kind = resource.plural, resource.kind
            gauge(f"virtops_cached_{name}", f"{kind} objects in the cache", partial(len, cache))
            gauge(
                f"virtops_cache_repaired_{name}",
                f"{kind} objects that a watch missed and a list repaired; should stay 0",
                lambda cache=cache: cache.counters.repaired,  # type: ignore[misc]
            )
            gauge(
                f"virtops_cache_unreadable_{name}",
                f"How often a {kind} object could not be read and was skipped; should stay 0",
                lambda cache=cache: cache.counters.unreadable,  # type: ignore[misc]
            )
