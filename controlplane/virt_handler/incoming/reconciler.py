# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reconciles VMIs that migrate to this node: reads caches and sessions, applies actions, writes the status."""

from __future__ import annotations

import logging

from controlplane.api.objects.decode import DecodeError, decode_vmi, encode
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.engine.errors import Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Cache, Clock
from controlplane.virt_handler.incoming.decide import decide
from controlplane.virt_handler.incoming.ports import Tunnels
from controlplane.virt_handler.incoming.status import derive_status
from controlplane.virt_handler.incoming.world import Action, CloseTunnel, OpenTunnel, World
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, Sessions
from controlplane.virt_handler.vmi.world import Destroy, Dial, PrepareNetwork

log = logging.getLogger(__name__)


class IncomingReconciler:
    """Implements engine.plan.Reconciler."""

    def __init__(
        self, node: str, vmis: Cache, launchers: Sessions, tunnels: Tunnels, *, api: Api, clock: Clock
    ) -> None:
        """vmis: the VMIs whose migration names this node as target."""
        self._node = node
        self._vmis = vmis
        self._launchers = launchers
        self._tunnels = tunnels
        self._api = api
        self._clock = clock
        self._uids: dict[Key, str] = {}
        """UIDs of the observed VMIs, to close the tunnels of deleted ones."""

    def observe(self, key: Key) -> World | None:
        """Read caches and sessions. Unavailable until the cache is synced: absence proves nothing before."""
        if not self._vmis.synced:
            raise Unavailable(f"cannot judge VirtualMachineInstance {key}: the cache is not synced yet")
        vmi = self._read(key)
        migration = None if vmi is None else vmi.status.migration_state
        if vmi is None or migration is None:
            return self._world_without_vmi(key)
        self._uids[key] = vmi.metadata.uid
        launchers = self._launchers.launchers_of(vmi.metadata.uid)
        return World(
            node=self._node,
            vmi=vmi,
            launcher=next((launcher for launcher in launchers if launcher.pod.uid == migration.target_pod_uid), None),
            tunnel=self._tunnels.address(migration.migration_uid),
            open_tunnels=self._tunnels.open_for(vmi.metadata.uid),
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
        )

    def _world_without_vmi(self, key: Key) -> World | None:
        """Return a world that closes the tunnels of a VMI that does not migrate to this node any more."""
        uid = self._uids.get(key, "")
        open_tunnels = self._tunnels.open_for(uid) if uid else frozenset()
        if not open_tunnels:
            self._uids.pop(key, None)
            return None
        return World(
            node=self._node,
            vmi=None,
            open_tunnels=open_tunnels,
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        """Apply one action; an operation of a launcher is only started. Unavailable when it cannot start now."""
        if isinstance(action, CloseTunnel):
            await self._tunnels.close(action.migration_uid)
        elif (vmi := world.vmi) is None:
            return
        elif isinstance(action, OpenTunnel):
            await self._tunnels.open(vmi.metadata.uid, world.moving)
        else:
            self._begin(vmi, action)

    def _begin(self, vmi: VirtualMachineInstance, action: PrepareNetwork | Dial | Destroy) -> None:
        session = self._launchers.session(action.pod_uid)
        if session is None:
            return
        try:
            if isinstance(action, Dial):
                session.admit()
            else:
                session.perform(action, OperationInputs(vmi))
        except NoContact as error:
            raise Unavailable(str(error)) from error

    async def write_status(self, world: World, status: VirtualMachineInstanceStatus) -> None:
        """Patch the changed fields, only if the VMI still has the observed resourceVersion and UID."""
        if (vmi := world.vmi) is None:
            return
        meta = vmi.metadata
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            Key(meta.namespace, meta.name),
            {"status": merge_patch(encode(vmi.status), encode(status))},
            subresource="status",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        """Log it. The migration's timeout ends a migration that makes no progress."""
        name = "" if world.vmi is None else world.vmi.metadata.name
        extra = {"vmi": name, "step": type(problem.step).__name__, "error": str(problem.error)}
        log.warning("refused", extra=extra)

    def _read(self, key: Key) -> VirtualMachineInstance | None:
        raw = self._vmis.get(key)
        try:
            return None if raw is None else decode_vmi(raw)
        except DecodeError as error:
            log.warning("a VMI cannot be read", extra={"key": str(key), "error": str(error)})
            return None
