# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the VM controller's decisions, and its actions. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kubevirt_api.condition_types import DISRUPTION_TARGET
from kubevirt_api.run_strategies import ALWAYS, BUILT, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects import conditions
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.state_change_requests import pending
from controlplane.api.objects.vm import StateChangeRequest, VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup

BACKED_OFF = frozenset({ALWAYS, RERUN_ON_FAILURE})
"""Strategies under which failed starts delay the next one."""
COUNTED = frozenset({ALWAYS, RERUN_ON_FAILURE, ONCE})
"""Strategies under which failed starts are counted."""


NOTHING_KNOWN = DataVolumeLookup()
UNCONFIGURED = KubeVirtConfiguration()


class Ownership(Enum):
    """Who owns the VMI of the VM's name."""

    NONE = auto()
    OWN = auto()
    ORPHAN = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class World:
    vm: VirtualMachine
    vmi: VirtualMachineInstance | None
    """The VMI of the VM's name, with any owner or none."""
    template: bytes
    """spec.template.spec as stored, JSON."""
    now: float
    """Seconds since the epoch."""
    is_delete_sent: bool = False
    """A deletion of `vmi` was accepted and is not in the cache yet."""
    is_volume_unbound: bool = False
    """A claim of the template exists without a volume."""
    data_volumes: DataVolumeLookup = NOTHING_KNOWN
    """DataVolumes of the VM's templates and volumes."""
    bound_claims: frozenset[str] = frozenset()
    """Claims of the template that have a volume."""
    configuration: KubeVirtConfiguration = UNCONFIGURED
    """Defaults for fields that the template does not set."""
    is_pod_evicted: bool | None = None
    """Whether the launcher Pod of the VMI was evicted or deleted, by the API server; None: it was not read."""
    is_instance_known: bool = True
    """`vmi`, or its absence, is no older than the VM: the cache has reached the VM's resourceVersion, or the API server
    confirmed it. Otherwise a VMI that a request names may be missing here, and a VMI that seems to run may have ended.
    """

    @property
    def claim(self) -> Ownership:
        return ownership_of(self.vm, self.vmi)

    @property
    def own(self) -> VirtualMachineInstance | None:
        """The VMI if the VM owns it; else None."""
        return self.vmi if self.claim is Ownership.OWN else None

    @property
    def was_evicted(self) -> bool:
        """Tell whether the VMI lost its launcher Pod before it ended, so the guest did not choose to stop."""
        own = self.own
        if own is None:
            return False
        return bool(self.is_pod_evicted) or conditions.is_true(own.status.conditions, DISRUPTION_TARGET)

    @property
    def is_strategy_known(self) -> bool:
        """Tell whether this version knows the run strategy. A newer API may have others."""
        return self.vm.run_strategy in BUILT

    @property
    def is_vm_deleting(self) -> bool:
        return self.vm.metadata.deletion_timestamp is not None

    @property
    def is_stopping(self) -> bool:
        """Tell whether its VMI is being deleted."""
        return self.own is not None and (self.own.metadata.deletion_timestamp is not None or self.is_delete_sent)

    @property
    def pending_requests(self) -> tuple[StateChangeRequest, ...]:
        """Start and stop requests that are not done; all requests if the state of the VMI may be outdated."""
        return self._open_requests if self.is_instance_known else self.vm.status.state_change_requests

    @property
    def is_in_doubt(self) -> bool:
        """Tell whether a request counts as done only because of a VMI state that may be outdated."""
        return not self.is_instance_known and self._open_requests != self.vm.status.state_change_requests

    @property
    def _open_requests(self) -> tuple[StateChangeRequest, ...]:
        # An orphan counts: the VM is about to adopt it, and must not lose a stop request for it before.
        vmi = None if self.claim is Ownership.FOREIGN else self.vmi
        uid = vmi.metadata.uid if vmi is not None else None
        return pending(self.vm.status.state_change_requests, uid=uid, is_own=self.own is not None)

    @property
    def wants_start(self) -> bool:
        return bool(self.pending_requests) and self.pending_requests[0].action == "Start"

    @property
    def wants_stop(self) -> bool:
        return bool(self.pending_requests) and self.pending_requests[0].action == "Stop"


def ownership_of(vm: VirtualMachine, vmi: VirtualMachineInstance | None) -> Ownership:
    """Return who owns a VMI of the VM's name. Only the controlling owner reference counts."""
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
    """The guest starts paused, even if the template does not ask for it."""


@dataclass(frozen=True, slots=True)
class SetRunStrategyAlways:
    """Set the run strategy of a halted VM to Always, as an ordinary start does."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmVmi:
    """Read the VMI from the API server."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmPod:
    """Read the launcher Pod of the VMI from the API server."""

    because: str


@dataclass(frozen=True, slots=True)
class AdoptVmi:
    because: str


@dataclass(frozen=True, slots=True)
class ReleaseVmi:
    """Remove the owner reference from the VMI, which keeps running."""

    because: str


@dataclass(frozen=True, slots=True)
class DeleteVmi:
    because: str


@dataclass(frozen=True, slots=True)
class ChangeVmi:
    """Write changes of the template into the running VMI."""

    patch: dict[str, Any]
    because: str


@dataclass(frozen=True, slots=True)
class CreateDataVolume:
    """Create the DataVolume of a template, under the template's name, so a second create fails."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class AdoptDataVolume:
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DropRequest:
    """Remove a request that can never be carried out, and record an Event."""

    dropped: StateChangeRequest
    left: tuple[StateChangeRequest, ...]
    because: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | CreateVmi
    | SetRunStrategyAlways
    | ConfirmVmi
    | ConfirmPod
    | AdoptVmi
    | ReleaseVmi
    | DeleteVmi
    | ChangeVmi
    | CreateDataVolume
    | AdoptDataVolume
    | DropRequest
)
