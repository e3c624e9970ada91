# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool controller: reads the caches into a World, writes actions and status. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any, Unpack

import msgspec

from controlplane.api.admission.defaults import default_vm
from controlplane.api.admission.identity import keep_identity
from controlplane.api.objects.pool import BURST, VirtualMachinePool
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Plan
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.members.cache import MemberCache
from controlplane.virt_controller.members.reconciler import Parts, SetReconciler, deletes_sent
from controlplane.virt_controller.pool.decide import decide
from controlplane.virt_controller.pool.machine import build_vm, change, name_of, number_of
from controlplane.virt_controller.pool.member import Member, Run, read_member, read_run
from controlplane.virt_controller.pool.revision import revision, stored_template
from controlplane.virt_controller.pool.world import Action, RestartVm, UpdateVm, World

Json = dict[str, Any]


class PoolReconciler(SetReconciler[VirtualMachinePool, Member, World]):
    member_kind = VIRTUAL_MACHINE
    template = "spec.virtualMachineTemplate"
    pause_events = (("SuccessfulResume", "Pool is unpaused"), ("SuccessfulPaused", "Pool is paused"))

    def __init__(
        self, *, pools: ReadYourWritesCache, vms: ReadYourWritesCache, vmis: ReadYourWritesCache, **parts: Unpack[Parts]
    ) -> None:
        super().__init__(VirtualMachinePool, sets=pools, objects=vms, read_member=read_member, **parts)
        self._vmis = vmis
        self._runs = MemberCache(vmis, read_run)

    def _is_synced(self) -> bool:
        return super()._is_synced() and self._vmis.synced

    def read_world(self, key: Key, owner: VirtualMachinePool, raw: bytes) -> World:
        members, template = self._controlled(owner), stored_template(raw)
        runs = {member.metadata.uid: run for member in members for run in self._runs_of(member)}
        names = tuple(name_of(key.name, number) for number in owner.status.begun)
        return World(
            **self._common(owner, members, names, owner.spec.virtual_machine_template.metadata.labels),
            template=template,
            revision=revision(key.name, template),
            runs=runs,
            restarts_sent=frozenset(deletes_sent(self._vmis, runs.values())),
            free=tuple(islice(self._free(key), min(BURST, max(0, owner.spec.replicas - len(members))))),
        )

    def _runs_of(self, member: Member) -> Iterator[Run]:
        for run in self._runs.read([member.key]):
            if run.is_controlled_by(VIRTUAL_MACHINE.kind, member.metadata.uid):
                yield run

    def _free(self, pool: Key) -> Iterator[int]:
        return (
            number for number in count() if self._objects.get(Key(pool.namespace, name_of(pool.name, number))) is None
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    async def apply(self, world: World, action: Action) -> None:
        match action:
            case UpdateVm():
                await self._update(world, action)
            case RestartVm():
                await self._restart(world.owner, action)
            case _:
                await super().apply(world, action)

    def build_member(self, world: World, name: str) -> Json:
        owner = world.owner
        number = number_of(owner.metadata.name, name)
        assert number is not None, name
        seed = f"{owner.metadata.uid}/{owner.status.batches}/{name}"
        return default_vm(build_vm(owner, world.template, number), self._configuration(), seed)

    def created_text(self, key: Key) -> str:
        return f"Created VM {key}"

    def deleted_text(self, member: Member, because: str) -> str:
        return f"Deleted VM {member.key} with uid {member.metadata.uid} from pool: {because}"

    async def _update(self, world: World, action: UpdateVm) -> None:
        """Patch the observed version of the VM."""
        meta, key = action.member.metadata, action.member.key
        raw = self._objects.get(key)
        if raw is None:
            return
        old = msgspec.json.decode(raw)
        wanted = keep_identity(build_vm(world.owner, world.template, action.number), old)
        patch = change(old, default_vm(wanted, self._configuration(), None))
        stored = await self._api.patch(
            VIRTUAL_MACHINE, key, patch, resource_version=meta.resource_version, uid=meta.uid
        )
        version = stored["metadata"]["resourceVersion"]
        self._record(world.owner, "SuccessfulUpdate", f"Updated VM {key}: {action.because}", occurrence=version)

    async def _restart(self, pool: VirtualMachinePool, action: RestartVm) -> None:
        """Delete the observed version of the VMI."""
        if await self._delete_version(VIRTUAL_MACHINE_INSTANCE, action.run):
            message = f"Updated VM {action.run.key} by deleting its instance, which is created again: {action.because}"
            self._record(pool, "SuccessfulUpdate", message, occurrence=action.run.metadata.uid)
