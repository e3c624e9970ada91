# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VMI reconciler needs of a node: its launchers, and the verbs of each. Protocols, and how they fail.

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
    """There is no connection to the launcher now, it broke, or another verb is under way: what was asked may or may not
    have happened."""


class StartRefused(Exception):
    """The domain was not started. The text says why."""


class Busy(NoContact):
    """Another verb is under way: nothing was asked."""


class VerbRefused(Exception):
    """The guest's state does not allow what a person asked for. The text says why."""


class CannotLook(Exception):
    """The node could not be searched: nothing follows from that."""


Granted = Callable[[], Awaitable[VirtualMachineInstance]]
"""Ask the API server itself: the VMI as it is now; NoContact says why the run is not granted, or that nobody knows."""


Write = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Writes:
    """What is written of a migration before it is done. NoContact says why it may not be, or that nobody knows."""

    begin: Write
    """It begins."""
    stop: Write
    """The guest is stopped, so that the rest of it can be sent."""


@dataclass(frozen=True, slots=True)
class OperationInputs:
    """What an operation needs beside its action."""

    vmi: VirtualMachineInstance | None = None
    """Of PrepareNetwork."""
    authorize_start: Granted | None = None
    """Of StartDomain: called in the moment of the start."""


NO_INPUTS = OperationInputs()


class Session(Protocol):
    """The session with one launcher. Operations only begin here, one at a time (NoContact while another one runs).

    `launcher()` shows an operation while it runs, and whether it failed. Its end enqueues the VMI.
    """

    def launcher(self) -> Launcher:
        """Return what is known now; never blocks."""

    def expect(self, expected: Expected) -> None:
        """Keep what was read of its VMI before the hand-over."""

    def admit(self) -> None:
        """Connect to the launcher from now on, and keep the connection."""

    def perform(self, action: Operation, inputs: OperationInputs = NO_INPUTS) -> None:
        """Begin an operation."""

    def transfer(self, vmi: VirtualMachineInstance, moving: MigrationState, writes: Writes) -> None:
        """Begin to send the guest to its migration's target; operations run beside it."""

    def abort_transfer(self) -> None:
        """Have the transfer given up."""


class Sessions(Protocol):
    """The launcher Pods of this node, one session each."""

    @property
    def synced(self) -> bool:
        """Whether all launcher Pods of this node are known; before that, nothing follows from the want of one."""

    @property
    def node_trouble(self) -> NodeTrouble | None:
        """Why nothing can be done on the node itself, and since when; None while it can. Its end wakes all."""

    def session(self, pod_uid: str) -> Session | None: ...

    def launchers_of(self, vmi_uid: str) -> tuple[Launcher, ...]:
        """Return the launchers that the VMI of this UID controls."""

    def launchers_named(self, key: Key) -> tuple[Launcher, ...]:
        """Return the launchers that a VMI of this name controls or controlled."""

    async def find_traces(self, pod_uid: str) -> Traces:
        """Look on the node itself for a Pod's directory and processes. CannotLook."""
