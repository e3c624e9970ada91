# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interfaces to libvirt and virt-node. controlplane.hypervisor and node.virt_node_client implement them."""

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
from controlplane.domain.statistics import Statistics
from controlplane.hypervisor.events import Event
from controlplane.links.node.messages import GuestDevice, Masquerade, MigrationChannel, PodInterface
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

    async def statistics(self) -> Statistics: ...

    async def screenshot(self) -> bytearray: ...

    async def ask_agent(self, command: str, seconds: int) -> str: ...

    async def set_time(self, now: Callable[[], float], seconds: int) -> None: ...

    async def abort_job(self) -> None: ...


class Events(Protocol):
    """The events of a connection; the last one is ConnectionClosed."""

    async def get(self) -> Event: ...

    def drain(self) -> list[Event]: ...


class Connection(Protocol):
    """A connection to one launcher's libvirtd."""

    @property
    def events(self) -> Events: ...

    async def guest(self, name: str) -> Guest | None: ...

    async def load_capabilities(self) -> None: ...

    async def define(self, xml: str) -> Guest: ...

    async def close(self) -> None: ...


Connect = Callable[[str], Awaitable[Connection]]
"""Opens a connection to libvirtd by its socket's path. HypervisorError."""


class Failed(Exception):
    """A guest was not sent, and stays at the source. The text is the reason."""


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """A request to send a guest to the target of its migration."""

    vmi: VirtualMachineInstance
    moving: MigrationState
    pod_uid: str
    """UID of the launcher Pod at the source."""
    guest: Guest
    is_paused_by_user: bool
    """A user has paused the guest: it stays paused at the target."""
    writes: Writes
    """Writes to the status before the first byte is sent, and before the guest is stopped."""
    is_still: bool = False
    """The guest must be paused during the transfer."""
    left: Callable[[], None] = lambda: None
    """Called when the guest has left the source, if that is detected before libvirt reports it."""
    unwanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the migration is aborted."""


Send = Callable[[TransferRequest], Awaitable[None]]
"""Sends a guest; returns when QEMU at the source has ended. Failed, NoContact, NodeError, HypervisorError, ApiError."""


class NodeError(Exception):
    """virt-node did not do what was requested. The text is the reason."""


class NodeAway(NodeError):
    """There is no connection to virt-node, or it broke: virt-node may have carried out the request."""


class NotThere(NodeError):
    """The requested object does not exist, or no longer exists."""


class Refused(NodeError):
    """A file of the launcher is not acceptable: a link, a wrong type, a wrong owner, or too large."""


@dataclass(frozen=True, slots=True)
class LauncherSocket:
    """A descriptor of a launcher's libvirt socket, which virt-node has checked."""

    descriptor: int

    @property
    def path(self) -> str:
        """The path to connect to. It leads to the checked inode, even if the directory has changed."""
        return f"/proc/self/fd/{self.descriptor}"

    def close(self) -> None:
        os.close(self.descriptor)


class Node(Protocol):
    """Operations on this node that need root. Every method may raise NodeError."""

    @property
    def trouble(self) -> str:
        """Why there is no connection; "" while there is one."""

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever the connection is made or lost."""

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        """Wait for libvirtd's socket."""

    async def open_migration_socket(self, pod_uid: str, channel: MigrationChannel) -> LauncherSocket:
        """Wait for the socket on which a target's QEMU listens."""

    async def open_guest_socket(self, pod_uid: str, device: GuestDevice) -> LauncherSocket:
        """Wait for the socket on which QEMU serves a device of the guest."""

    async def listen_for_migration(self, pod_uid: str, channel: MigrationChannel) -> socket.socket:
        """Create a listening socket that the source's QEMU dials."""

    async def read_report(self, pod_uid: str) -> bytes:
        """Read the report; NotThere when there is none yet."""

    async def read_console_backlog(self, pod_uid: str) -> bytes:
        """Read the last bytes that the guest has printed on its console; NotThere when there is no log."""

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Provide libvirt's capability cache, if the node has one: it saves half a second of probing QEMU."""

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface: ...

    async def find_traces(self, pod_uid: str, *, wait_seconds: float = 0.0) -> Traces: ...
