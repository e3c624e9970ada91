# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session needs of libvirt and of the node. controlplane.hypervisor and node_client implement it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import State
from controlplane.hypervisor.events import Event
from controlplane.links.node.messages import Masquerade, MigrationChannel, PodInterface
from controlplane.virt_handler.vmi.ports import Writes
from controlplane.virt_handler.vmi.world import Traces

Result = TypeVar("Result")


class Guest(Protocol):
    """One domain."""

    async def start(self, *, is_paused: bool = False) -> None: ...

    async def shutdown(self) -> None: ...

    async def destroy(self) -> None: ...

    async def kill(self) -> None: ...

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def set_vcpus(self, count: int) -> None: ...

    async def set_memory(self, requested_bytes: int) -> None: ...

    async def reset(self) -> None: ...

    async def reboot(self) -> None: ...

    async def state(self) -> State: ...

    async def described(self, read: Callable[[str], Result]) -> Result: ...

    async def ask_agent(self, command: str, seconds: int) -> str: ...

    async def abort_job(self) -> None: ...


class Events(Protocol):
    """What happened on a connection; the last one is ConnectionClosed."""

    async def get(self) -> Event: ...

    def drain(self) -> list[Event]: ...


class Connection(Protocol):
    """A connection to one launcher's libvirtd."""

    @property
    def events(self) -> Events: ...

    async def guest(self, name: str) -> Guest | None: ...

    async def define(self, xml: str) -> Guest: ...

    async def close(self) -> None: ...


Connect = Callable[[str], Awaitable[Connection]]
"""Open a connection to the libvirtd behind a socket's path; HypervisorError."""


class Failed(Exception):
    """A guest was not sent, and stays where it is. The text says why."""


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """A guest that is to be sent to the target of its migration."""

    vmi: VirtualMachineInstance
    moving: MigrationState
    pod_uid: str
    """Of its launcher here."""
    guest: Guest
    is_paused_by_user: bool
    """A person has paused it: it stays paused there."""
    writes: Writes
    """Asked before the first byte is sent, and before the guest is stopped."""
    is_still: bool = False
    """Its memory cannot be sent while it writes to it."""
    left: Callable[[], None] = lambda: None
    """Told, where that is known before libvirt says it, that nothing of the guest is here: the target has it."""
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody wants it to be sent any more."""


Send = Callable[[TransferRequest], Awaitable[None]]
"""Send a guest; it returns when QEMU here is gone for good. Failed, NoContact, NodeError, HypervisorError, ApiError."""


class NodeError(Exception):
    """virt-node did not do what was asked for. Its text says why."""


class NodeAway(NodeError):
    """There is no connection to virt-node, or it broke: what was asked for may or may not have been done."""


class NotThere(NodeError):
    """What was asked for is not there, or not there any more."""


class Refused(NodeError):
    """Something of the launcher is not what it has to be: a link, another type, another owner, too large."""


@dataclass(frozen=True, slots=True)
class LauncherSocket:
    """A descriptor of a launcher's libvirt socket, proven by virt-node."""

    descriptor: int

    @property
    def path(self) -> str:
        """What to dial: it reaches the proven inode, whatever the directory says by now."""
        return f"/proc/self/fd/{self.descriptor}"

    def close(self) -> None:
        os.close(self.descriptor)


class Node(Protocol):
    """What root does for a launcher of this node. Every method: NodeError."""

    @property
    def trouble(self) -> str:
        """Why nothing is done now; "" while there is contact."""

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever contact has come or gone."""

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        """Wait for libvirtd's socket."""

    async def open_migration_socket(self, pod_uid: str, channel: MigrationChannel) -> LauncherSocket:
        """Wait for the socket on which a target's QEMU listens."""

    async def listen_for_migration(self, pod_uid: str, channel: MigrationChannel) -> socket.socket:
        """Make the socket that a source's QEMU dials, and listen on it."""

    async def read_report(self, pod_uid: str) -> bytes:
        """Read the report; NotThere when there is none yet."""

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Save libvirt the half second of probing QEMU, if the node has probed it before."""

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface: ...

    async def find_traces(self, pod_uid: str) -> Traces: ...
