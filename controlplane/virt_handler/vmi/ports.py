# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VMI reconciler needs of a node: its launchers and the operations on each. Protocols and their errors.

controlplane.virt_handler.launchers implements them with sockets and libvirt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_handler.vmi.world import Expected, Launcher, NodeTrouble, Operation, Traces


class NoContact(Exception):
    """The launcher is not connected, the connection broke, or another operation is under way. The operation may have
    taken effect."""


class StartRefused(Exception):
    """The domain was not started. The text says why."""


class Busy(NoContact):
    """Another operation is under way: nothing was sent."""


class VerbRefused(Exception):
    """The guest's state does not allow the user request. The text says why."""


class CannotLook(Exception):
    """The node could not be searched. That proves nothing."""


Granted = Callable[[], Awaitable[VirtualMachineInstance]]
"""Return the VMI as the API server has it now. NoContact: the run is not granted, or that cannot be determined."""


Write = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes before each step of a migration. NoContact: the step is not allowed, or that cannot be determined."""

    begin: Write
    """Before the transfer begins."""
    stop: Write
    """Before the guest is stopped to send the rest of its memory."""


@dataclass(frozen=True, slots=True)
class OperationInputs:
    """What an operation needs in addition to its action."""

    vmi: VirtualMachineInstance | None = None
    """For PrepareNetwork."""
    authorize_start: Granted | None = None
    """For StartDomain: called right before the start."""


NO_INPUTS = OperationInputs()


class Session(Protocol):
    """The session with one launcher. Methods only begin an operation, one at a time (NoContact while another one runs).

    `launcher()` shows an operation while it runs, and whether it failed. Its end enqueues the VMI.
    """

    def launcher(self) -> Launcher:
        """Return the launcher's observed state; never blocks."""

    def expect(self, expected: Expected) -> None:
        """Keep the VMI that was read before the hand-over."""

    def admit(self) -> None:
        """Connect to the launcher from now on, and keep the connection."""

    def perform(self, action: Operation, inputs: OperationInputs = NO_INPUTS) -> None:
        """Begin an operation."""

    def transfer(self, vmi: VirtualMachineInstance, migration: MigrationState, writes: Writes) -> None:
        """Begin to send the guest to its migration's target; operations run beside it."""

    def abort_transfer(self) -> None:
        """Ask libvirt to abort the transfer."""


class Sessions(Protocol):
    """The launcher Pods of this node, one session each."""

    @property
    def synced(self) -> bool:
        """Whether all launcher Pods of this node are listed. Before that, a missing Pod proves nothing."""

    @property
    def node_trouble(self) -> NodeTrouble | None:
        """Why virt-node is not reachable, and since when; None while it is. Its return enqueues all VMIs."""

    def session(self, pod_uid: str) -> Session | None: ...

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        """Return the launchers that the VMI of this UID controls."""

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        """Return the launchers that a VMI of this name controls or controlled."""

    async def find_traces(self, pod_uid: str) -> Traces:
        """Search the node itself for a Pod's directory and processes. Raises CannotLook."""
