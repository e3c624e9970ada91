# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VM controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kubevirt_api.run_strategies import ALWAYS, BUILT, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.state_change_requests import pending
from controlplane.api.objects.vm import StateChangeRequest, VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup

BACKED_OFF = frozenset({ALWAYS, RERUN_ON_FAILURE})
"""Strategies under which starts that failed delay the next one."""
COUNTED = frozenset({ALWAYS, RERUN_ON_FAILURE, ONCE})
"""Strategies under which failed starts are counted."""


NOTHING_KNOWN = DataVolumeLookup()
UNCONFIGURED = KubeVirtConfiguration()


class Ownership(Enum):
    """Whose the VMI of the VM's name is."""

    NONE = auto()
    OWN = auto()
    ORPHAN = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class World:
    vm: VirtualMachine
    vmi: VirtualMachineInstance | None
    """The one of the VM's name, whoever owns it."""
    template: bytes
    """spec.template.spec as the API server has it, JSON."""
    now: float
    """Seconds since the epoch."""
    is_delete_sent: bool = False
    """A delete of `vmi` was accepted, its effect is not seen yet."""
    is_volume_unbound: bool = False
    """A claim of the template exists, and there is no volume for it yet."""
    data_volumes: DataVolumeLookup = NOTHING_KNOWN
    """Of those that the VM's templates make, and that its volumes name."""
    bound_claims: frozenset[str] = frozenset()
    """Claims of the template that have a volume."""
    configuration: KubeVirtConfiguration = UNCONFIGURED
    """What an instance gets where its template says nothing."""
    is_instance_known: bool = True
    """`vmi`, or that it is None, is no older than the VM: the cache has read so far, or the API server was asked. Else
    an instance that a request names may not be seen yet, and one that seems to live may have ended long ago."""

    @property
    def claim(self) -> Ownership:
        return ownership_of(self.vm, self.vmi)

    @property
    def own(self) -> VirtualMachineInstance | None:
        """The VM's instance; None when there is none, or the one there belongs to nobody or to somebody else."""
        return self.vmi if self.claim is Ownership.OWN else None

    @property
    def is_strategy_known(self) -> bool:
        """Tell whether this version knows what the run strategy asks for; a newer API may have others."""
        return self.vm.run_strategy in BUILT

    @property
    def is_vm_deleting(self) -> bool:
        return self.vm.metadata.deletion_timestamp is not None

    @property
    def is_stopping(self) -> bool:
        """Tell whether the own instance is on its way out."""
        return self.own is not None and (self.own.metadata.deletion_timestamp is not None or self.is_delete_sent)

    @property
    def pending_requests(self) -> tuple[StateChangeRequest, ...]:
        """Start and stop requests that are not done yet. In doubt none is."""
        return self._left if self.is_instance_known else self.vm.status.state_change_requests

    @property
    def is_in_doubt(self) -> bool:
        """Tell whether a request would count as done by what is known of the instance, and that may be too old."""
        return not self.is_instance_known and self._left != self.vm.status.state_change_requests

    @property
    def _left(self) -> tuple[StateChangeRequest, ...]:
        # An orphan counts: it is about to be adopted, and a stop of it must not be forgotten before.
        there = None if self.claim is Ownership.FOREIGN else self.vmi
        uid = there.metadata.uid if there is not None else None
        return pending(self.vm.status.state_change_requests, uid=uid, is_own=self.own is not None)

    @property
    def wants_start(self) -> bool:
        return bool(self.pending_requests) and self.pending_requests[0].action == "Start"

    @property
    def wants_stop(self) -> bool:
        return bool(self.pending_requests) and self.pending_requests[0].action == "Stop"


def ownership_of(vm: VirtualMachine, vmi: VirtualMachineInstance | None) -> Ownership:
    """Say whose an instance of the VM's name is. Only the owner that controls counts, not one that is merely listed."""
    if vmi is None:
        return Ownership.NONE
    owner = controller_of(vmi.metadata)
    if owner is None:
        return Ownership.ORPHAN
    return Ownership.OWN if owner.uid == vm.metadata.uid else Ownership.FOREIGN


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    because: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    because: str


@dataclass(frozen=True, slots=True)
class CreateVmi:
    because: str
    is_paused: bool = False
    """Its guest waits for an unpause, whatever the template says."""


@dataclass(frozen=True, slots=True)
class SetRunStrategyAlways:
    """Set the run strategy of a halted VM to Always, as an ordinary start of one does."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmVmi:
    """Ask the API server, not the cache, whether an instance exists."""

    because: str


@dataclass(frozen=True, slots=True)
class AdoptVmi:
    because: str


@dataclass(frozen=True, slots=True)
class ReleaseVmi:
    """Take our owner reference off the instance, which is to live on."""

    because: str


@dataclass(frozen=True, slots=True)
class DeleteVmi:
    because: str


@dataclass(frozen=True, slots=True)
class ChangeVmi:
    """Write into the instance what of the template may change while it runs."""

    patch: dict[str, Any]
    because: str


@dataclass(frozen=True, slots=True)
class CreateDataVolume:
    """Make the DataVolume of a template; its name keeps it from being made twice."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class AdoptDataVolume:
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DropRequest:
    """Take a request that can never be carried out off the queue, and tell."""

    dropped: StateChangeRequest
    left: tuple[StateChangeRequest, ...]
    because: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | CreateVmi
    | SetRunStrategyAlways
    | ConfirmVmi
    | AdoptVmi
    | ReleaseVmi
    | DeleteVmi
    | ChangeVmi
    | CreateDataVolume
    | AdoptDataVolume
    | DropRequest
)
