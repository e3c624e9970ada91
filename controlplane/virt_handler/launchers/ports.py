# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a session needs of libvirt and of the Pod's network. controlplane.hypervisor and network.netns implement it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from controlplane.domain.state import State
from controlplane.hypervisor.events import Event
from controlplane.virt_handler.network.masquerade import Masquerade
from controlplane.virt_handler.network.pod_interface import PodInterface


class Guest(Protocol):
    """One domain."""

    async def start(self) -> None: ...

    async def shutdown(self) -> None: ...

    async def destroy(self) -> None: ...

    async def kill(self) -> None: ...

    async def resume(self) -> None: ...

    async def state(self) -> State: ...

    async def xml(self) -> str: ...


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

SetUpNetwork = Callable[[AbstractContextManager[int], Masquerade], Awaitable[PodInterface]]
"""Make a Pod's network ready inside the namespace that the context gives."""
