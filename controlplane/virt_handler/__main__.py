# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virt-handler process: settings, wiring and tasks. The packages in this folder do the work."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
import time
from functools import partial
from typing import Final, Literal

from kubevirt_api.names import CONTROL_PLANE_IMAGE, LAUNCHER_ROLE, ROLE

from controlplane.api.objects.lease import lease_name
from controlplane.api.objects.resources import API_SERVICE, KUBEVIRT, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.api.version import KUBEVIRT_VERSION
from controlplane.engine.backoff import BackOff
from controlplane.engine.clock import SystemClock
from controlplane.engine.ports import Json
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from controlplane.http_server.health import Health, tls_context
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.hypervisor.connection import open_connection, register_event_loop, socket_uri
from controlplane.kube.client import Client, Selection
from controlplane.kube.configuration import Configuration
from controlplane.kube.credentials import CredentialsError, load
from controlplane.kube.events import EventSpec, create_event
from controlplane.kube.lease import Heartbeat
from controlplane.kube.transport import Transport
from controlplane.kube.watch import WatchCache
from controlplane.links.handler import Inquire, Power, TakeScreenshot
from controlplane.process import logs
from controlplane.process.descriptors import raise_descriptor_limit
from controlplane.process.log_level import LogLevel
from controlplane.process.signals import run_until_signal
from controlplane.tls.policy import tls_policy
from controlplane.virt_handler.api_endpoint.client_ca import API_SERVICE_SELECTOR, use_client_ca
from controlplane.virt_handler.api_endpoint.guest_info import GuestInfo
from controlplane.virt_handler.api_endpoint.power import PowerRequests
from controlplane.virt_handler.api_endpoint.screenshots import Screenshots
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair
from controlplane.virt_handler.guest_statistics import GuestStatistics
from controlplane.virt_handler.incoming.reconciler import IncomingReconciler
from controlplane.virt_handler.incoming.world import Action as IncomingAction
from controlplane.virt_handler.incoming.world import World as IncomingWorld
from controlplane.virt_handler.launchers.ports import Connection
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.metrics import HandlerMetrics
from controlplane.virt_handler.migration.incoming_tunnels import IncomingTunnels
from controlplane.virt_handler.migration.network import has_network, waiting_address
from controlplane.virt_handler.migration.peer import certificate_annotation
from controlplane.virt_handler.migration.sender import Sender
from controlplane.virt_handler.node.labels import endpoint_annotations
from controlplane.virt_handler.node.registration import NodeRegistration
from controlplane.virt_handler.node.virt_node_client import NodeClient, dial_virt_node
from controlplane.virt_handler.node_recovery.recovery import NodeRecovery
from controlplane.virt_handler.settings import Settings, SettingsError, read_settings
from controlplane.virt_handler.streams.guest_sockets import GuestSockets
from controlplane.virt_handler.vmi.events import VmiEvent
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi.world import Action, World

log = logging.getLogger(__name__)

COMPONENT: Final = "virt-handler"
_WORKERS = 32


class Handler:
    """The wired components of this process, and their tasks."""

    def __init__(
        self, settings: Settings, client: Client, pair: SelfSignedPair, migration_pair: SelfSignedPair
    ) -> None:
        """pair: serves the endpoint for virt-api. migration_pair: authenticates to other virt-handlers."""
        self._settings = settings
        self._client = client
        self._clock = SystemClock()
        self._node = NodeClient(lambda: dial_virt_node(settings.node_socket))
        self._metrics = HandlerMetrics(settings.node)
        self._metrics.watch_deprecated_machines(lambda: self._node.deprecated_machines)
        self._pods = WatchCache(client, self._select_pods(), self._clock)
        self._vmis = WatchCache(client, self._select_vmis(), self._clock)
        self._incoming_vmis = WatchCache(client, self._select_incoming(), self._clock)
        self._kubevirts = WatchCache(client, Selection(KUBEVIRT, settings.namespace), self._clock)
        self._configuration = Configuration(self._kubevirts)
        self._configuration.subscribe(LogLevel(COMPONENT, settings.log_level, settings.node))
        vmis, incoming_vmis = ReadYourWritesCache(self._vmis), ReadYourWritesCache(self._incoming_vmis)
        sender = Sender(
            *(migration_pair, self._node, client, self._clock),
            directory=settings.sockets,
            progressed=self._metrics.progressed,
            has_network=partial(has_network, settings.migration_network),
        )
        tools = Tools(self._node, self._clock, _connect, started=self._metrics.started, send=sender.send)
        self._registry = Registry(self._pods, tools, self._enqueue)
        tunnels = IncomingTunnels(
            migration_pair,
            partial(waiting_address, settings.address, settings.migration_network),
            self._node,
            client,
            changed=lambda _uid: self._enqueue_incoming(),
        )
        self._incoming: Runner[IncomingWorld, IncomingAction, VirtualMachineInstanceStatus] = Runner(
            "incoming",
            IncomingReconciler(
                settings.node,
                incoming_vmis,
                self._registry,
                tunnels,
                api=ReadYourWritesApi(client, {VIRTUAL_MACHINE_INSTANCE: incoming_vmis}),
                clock=self._clock,
            ),
            WorkQueue(BackOff(random.random)),
            self._clock,
            observed=self._metrics.observed,
        )
        incoming_vmis.subscribe(lambda key, _before, _after: self._incoming.add(key))
        self._reconciler = VmiReconciler(
            settings.node,
            vmis,
            self._registry,
            ReadYourWritesApi(client, {VIRTUAL_MACHINE_INSTANCE: vmis}),
            self._clock,
            record_event=self._record_event,
            start_blocked_reason=lambda: self._recovery.start_blocked_reason,
        )
        self._runner: Runner[World, Action, VirtualMachineInstanceStatus] = Runner(
            "vmi",
            self._reconciler,
            WorkQueue(BackOff(random.random)),
            self._clock,
            limit=_WORKERS,
            observed=self._metrics.observed,
        )
        vmis.subscribe(lambda key, _before, _after: self._enqueue(key))
        self._metrics.watch_load("vmi", self._runner.load)
        self._metrics.watch_load("incoming", self._incoming.load)
        self._endpoint_tls = EndpointTls(pair)
        self._endpoint = ApiEndpoint(
            self._endpoint_tls,
            settings.namespace,
            {
                Power: PowerRequests(settings.node, self._registry, vmis, self._clock, self._record_event).answer,
                Inquire: GuestInfo(settings.node, self._registry).answer,
                TakeScreenshot: Screenshots(settings.node, self._registry).answer,
            },
            GuestSockets(settings.node, self._registry, self._node, vmis),
        )
        self._api_services = WatchCache(
            client, Selection(API_SERVICE, field_selector=API_SERVICE_SELECTOR), self._clock
        )
        self._api_services.subscribe(lambda _unused, __, after: use_client_ca(self._endpoint_tls, after))
        self._statistics = GuestStatistics(settings.node, self._registry.statistics, vmis, incoming_vmis)
        self._metrics.registry.register(self._statistics)
        self._health = Health(
            settings.port,
            MetricsPage(self._metrics.registry, self._statistics.refresh),
            self._missing_parts,
            tls_context(pair.certificate, pair.key),
            config_version=lambda: self._configuration.version,
            address=settings.address,
        )
        self._configuration.subscribe(lambda new: self._health.use_policy(tls_policy(new.tls_configuration)))
        self._heartbeat = self._make_heartbeat()
        self._recovery = NodeRecovery(
            self._registry,
            client,
            self._clock,
            self._heartbeat,
            changed=self._recovered,
            record_event=self._record_event,
        )
        self._registration = NodeRegistration(
            settings.node,
            self._node,
            client,
            self._clock,
            self._heartbeat,
            annotations={
                **endpoint_annotations(settings.address, settings.endpoint_port, pair.der),
                **certificate_annotation(migration_pair),
                CONTROL_PLANE_IMAGE: settings.image,
            },
            is_on_control_plane=settings.is_on_control_plane,
            start_blocked_reason=lambda: self._recovery.start_blocked_reason,
        )

    async def run(self) -> None:
        """Serve until cancelled."""
        self._metrics.version(KUBEVIRT_VERSION)
        self._metrics.gauge(
            "kubevirt_virt_handler_ready_status",
            "Indication for a virt-handler that is ready to serve requests.",
            lambda: float(not self._missing_parts()),
        )
        self._metrics.gauge("virtops_launchers", "Launcher Pods of this node", lambda: len(self._registry))
        self._metrics.gauge(
            "virtops_launchers_connected", "Launchers with a connection", lambda: self._registry.connected
        )
        self._metrics.gauge(
            "virtops_orphans", "Guests that do not belong to this node any more", lambda: self._recovery.orphans
        )
        self._metrics.gauge(
            "virtops_guests_unanswered",
            "Launchers whose VMI could not be read from the API server yet",
            lambda: self._recovery.unanswered,
        )
        await self._health.start()
        try:
            await self._endpoint.open(self._settings.address, self._settings.endpoint_port)
            caches = (self._pods, self._vmis, self._incoming_vmis, self._api_services, self._kubevirts)
            async with asyncio.TaskGroup() as group:
                for job in (self._node.run, *(cache.run for cache in caches), self._registry.run, self._work):
                    group.create_task(job())
                group.create_task(self._heartbeat.run())
                group.create_task(self._recover())
                group.create_task(self._registration.run())
        finally:
            await self._registration.leave()
            await self._endpoint.close()
            await self._health.close()

    def _select_pods(self) -> Selection:
        return Selection(
            POD, label_selector=f"{ROLE}={LAUNCHER_ROLE}", field_selector=f"spec.nodeName={self._settings.node}"
        )

    def _select_vmis(self) -> Selection:
        return Selection(VIRTUAL_MACHINE_INSTANCE, field_selector=f"status.nodeName={self._settings.node}")

    def _select_incoming(self) -> Selection:
        return Selection(
            VIRTUAL_MACHINE_INSTANCE, field_selector=f"status.migrationState.targetNode={self._settings.node}"
        )

    def _make_heartbeat(self) -> Heartbeat:
        settings = self._settings
        key = Key(settings.namespace, lease_name(settings.node))
        holder = settings.pod_name or settings.node
        return Heartbeat(self._client, key, holder, self._clock, labels={ROLE: COMPONENT})

    def _enqueue(self, key: Key) -> None:
        self._runner.add(key)
        self._incoming.add(key)

    def _enqueue_incoming(self) -> None:
        for key in self._incoming_vmis.keys():  # noqa: SIM118 - a cache is no dict
            self._incoming.add(key)

    async def _work(self) -> None:
        """Reconcile once the caches are synced: before that, absence proves nothing."""
        await self._wait_synced()
        self._enqueue_all()
        self._enqueue_incoming()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._runner.run())
            group.create_task(self._incoming.run())

    async def _recover(self) -> None:
        await self._wait_synced()
        await self._recovery.run()

    def _recovered(self) -> None:
        """Enqueue the VMIs that wait for a start, and make the node schedulable at once."""
        self._enqueue_all()
        self._heartbeat.resumed.set()

    async def _wait_synced(self) -> None:
        await self._vmis.wait_synced()
        await self._incoming_vmis.wait_synced()
        await self._pods.wait_synced()

    def _enqueue_all(self) -> None:
        for key in {*self._vmis.keys(), *self._registry.keys()}:
            self._runner.add(key)

    async def _record_event(self, about: Json, event: VmiEvent) -> None:
        event_type: Literal["Normal", "Warning"] = "Warning" if event.is_warning else "Normal"
        spec = EventSpec(event.reason, event.message, event_type, once=event.once)
        now = self._clock.now()
        await create_event(self._client, about, spec, component=COMPONENT, instance=self._settings.node, now=now)

    def _missing_parts(self) -> list[str]:
        missing = sorted(self._registration.missing)
        caches = (("VMIs", self._vmis), ("incoming VMIs", self._incoming_vmis), ("Pods", self._pods))
        missing += [name for name, cache in caches if not cache.synced]
        return missing


async def _connect(path: str) -> Connection:
    return await open_connection(socket_uri(path))


async def _serve(settings: Settings) -> None:
    register_event_loop()
    credentials = await load(os.environ, time.monotonic)
    pair, migration_pair = await asyncio.gather(
        make_self_signed_pair(settings.node), make_self_signed_pair(settings.node, "peer")
    )
    async with Transport(credentials, COMPONENT) as transport:
        client = Client(transport, field_manager=COMPONENT)
        await run_until_signal(Handler(settings, client, pair, migration_pair).run)


def main() -> int:
    """Run until a signal; return the exit code."""
    try:
        settings = read_settings(os.environ)
        logs.configure(COMPONENT, settings.log_level)
        raise_descriptor_limit()
        asyncio.run(_serve(settings))
    except (SettingsError, CredentialsError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception:
        log.exception("virt-handler ends")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
