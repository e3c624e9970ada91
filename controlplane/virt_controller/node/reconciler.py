# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node controller: reads the caches, writes one label."""

from __future__ import annotations

import logging
from typing import NoReturn

from kubevirt_api import condition_types
from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.lease import Lease, Renewal, lease_name, node_of
from controlplane.api.objects.node import Node
from controlplane.api.objects.resources import LEASE, NODE, Key
from controlplane.engine.errors import Conflict, NotFound
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Cache, Clock
from controlplane.virt_controller.node.decide import decide
from controlplane.virt_controller.node.lease_observations import LeaseObservations
from controlplane.virt_controller.node.world import Action, World
from controlplane.virt_controller.reporting.events import Events, Regarding

log = logging.getLogger(__name__)

REASON = condition_types.VIRT_HANDLER_SILENT


class NodeReconciler:
    def __init__(self, *, nodes: Cache, leases: Cache, api: Api, clock: Clock, events: Events, namespace: str) -> None:
        """namespace: the namespace of the Leases."""
        self._nodes = nodes
        self._leases = leases
        self._api = api
        self._clock = clock
        self._events = events
        self._namespace = namespace
        self._lease_observations = LeaseObservations()
        leases.subscribe(self._lease_changed)

    def begin(self) -> None:
        """Start to observe the Leases: only the time since this process became the leader counts."""
        self._lease_observations.begin()

    def observe(self, key: Key) -> World | None:
        raw = self._nodes.get(key)
        if raw is None:
            self._lease_observations.forget(key.name)
            return None
        lease = read_lease(self._leases.get(self._lease_key(key)))
        return World(node=decode(raw, Node), lease=lease, unrenewed_for=self._observe_lease(key.name, lease))

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    async def apply(self, world: World, action: Action) -> None:
        """Write the label, unless the API server has a renewal that the cache lacks. Raises ApiError."""
        meta = world.node.metadata
        key = Key("", meta.name)
        await self._confirm(key, world.lease)
        patch = {"metadata": {"labels": {SCHEDULABLE: "false"}}}
        await self._api.patch(NODE, key, patch, subresource="status", uid=meta.uid)
        message = (
            f"No new virtual machines are scheduled to this node: {action.because}. Running ones are not affected."
        )
        self._events.record(Regarding(NODE, key, meta.uid), "Warning", REASON, message)

    async def _confirm(self, key: Key, lease: Lease | None) -> None:
        """Read the Lease from the API server: a broken watch makes every Lease look silent. Raises Conflict."""
        try:
            current = decode(await self._api.get(LEASE, self._lease_key(key)), Lease)
        except NotFound:
            current = None
        self._observe_lease(key.name, current)
        if _renewal(current) != _renewal(lease):
            raise Conflict(f"the Lease of virt-handler on {key} was renewed meanwhile")

    def derive_status(self, _world: World, _problem: RefusedStep[Action] | None) -> None:
        return None

    async def write_status(self, world: World, _status: None) -> NoReturn:
        raise AssertionError(f"a Node has no status of ours: {world.node.metadata.name}")

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        log.warning("refused", extra={"key": world.node.metadata.name, "error": str(problem.error)})

    def _lease_key(self, node: Key) -> Key:
        return Key(self._namespace, lease_name(node.name))

    def _observe_lease(self, node: str, lease: Lease | None) -> float:
        return self._lease_observations.observe(node, _renewal(lease), self._clock.monotonic())

    def _lease_changed(self, key: Key, _before: bytes | None, after: bytes | None) -> None:
        node = node_of(key.name)
        if node is not None:
            self._observe_lease(node, read_lease(after))


def _renewal(lease: Lease | None) -> Renewal | None:
    return None if lease is None else lease.renewal


def read_lease(raw: bytes | None) -> Lease | None:
    """Decode a Lease; None if it is missing or unreadable."""
    try:
        return None if raw is None else decode(raw, Lease)
    except DecodeError as error:
        log.warning("a Lease cannot be read", extra={"error": str(error)})
        return None
