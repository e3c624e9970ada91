# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set controller: reads the caches into a World, writes actions and status. It chooses nothing.

Scaling up by n costs two status writes (the batch, and the count), n creates and n Events.
"""

from __future__ import annotations

from typing import Any, Unpack

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Plan
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.members.reconciler import Parts, SetReconciler
from controlplane.virt_controller.members.world import MemberAction
from controlplane.virt_controller.replicaset.decide import decide
from controlplane.virt_controller.replicaset.failures import Failures
from controlplane.virt_controller.replicaset.instance import build_vmi, names_of_batch
from controlplane.virt_controller.replicaset.member import UNCONTROLLED, Member, read_member
from controlplane.virt_controller.replicaset.world import World
from controlplane.virt_controller.vm.template import stored_template


class ReplicaSetReconciler(SetReconciler[VirtualMachineInstanceReplicaSet, Member, World]):
    member_kind = VIRTUAL_MACHINE_INSTANCE
    template = "spec.template"
    pause_events = (("SuccessfulResumed", "Resumed"), ("SuccessfulPaused", "Paused"))

    def __init__(self, *, replica_sets: ReadYourWritesCache, vmis: ReadYourWritesCache, **parts: Unpack[Parts]) -> None:
        """vmis has the index UNCONTROLLED."""
        super().__init__(
            VirtualMachineInstanceReplicaSet, sets=replica_sets, objects=vmis, read_member=read_member, **parts
        )
        self._failures = Failures()

    def _forget(self, key: Key) -> None:
        super()._forget(key)
        self._failures.forget(key)

    def read_world(self, key: Key, owner: VirtualMachineInstanceReplicaSet, raw: bytes) -> World:
        members = self._controlled(owner)
        orphans = self._members.read(self._objects.indexed(UNCONTROLLED, key.namespace))
        held_back, held_for = self._failures.note(key, owner, members, self._clock.monotonic())
        return World(
            **self._common(owner, members, names_of_batch(owner), owner.spec.template.metadata.labels),
            template=stored_template(raw),
            orphans=tuple(orphan for orphan in orphans if controller_of(orphan.metadata) is None),
            held_back=held_back,
            held_for=held_for,
        )

    def decide(self, world: World) -> Plan[MemberAction]:
        return decide(world)

    def build_member(self, world: World, name: str) -> dict[str, Any]:
        seed = f"{world.owner.metadata.uid}/{name}"
        return default_instance(build_vmi(world.owner, world.template, name), self._configuration(), seed)

    def created_text(self, key: Key) -> str:
        return f"Started the virtual machine by creating the new virtual machine instance {key.name}"

    def deleted_text(self, member: Member, because: str) -> str:
        name = member.metadata.name
        return f"Stopped the virtual machine by deleting the virtual machine instance {name}: {because}"
