# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sees that a guest has left as soon as it has: libvirt looks for QEMU's end five times a second, and the guest waits.

The proof is virt-node's: no QEMU is left in the launcher's Pod. It counts only between two looks that find the whole
guest at the target, by the connection by which libvirt there answers whoever sends it. Where that answer is lost, the
guest is let go on here, and may die thereafter; but then the connection was lost before, and the second look fails.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.events import ConnectionClosed, LifecycleChanged
from controlplane.hypervisor.guest import Guest
from controlplane.virt_handler.launchers.ports import NodeError
from controlplane.virt_handler.vmi.world import Traces

WHOLE = State(Life.PAUSED, "user")
"""At the target, when it has all of the guest."""
_FIRST_SECONDS, _LAST_SECONDS = 0.02, 0.5
"""Between looks for QEMU, ever longer: it takes a tenth of a second to end."""


class FindTraces(Protocol):
    """Of virt-node's."""

    async def find_traces(self, pod_uid: str) -> Traces: ...


class SourceExit:
    """Of one guest. `there` is the guest at the target, once nothing of it is left here."""

    def __init__(self, node: FindTraces, pod_uid: str, name: str, target: Connection) -> None:
        """name: of the domain. target: the connection by which the guest is sent."""
        self._node = node
        self._pod_uid = pod_uid
        self._name = name
        self._target = target
        self.there: Guest | None = None

    async def watch(self) -> None:
        """Wait until it has left; it returns without that where nobody can tell."""
        try:
            if await self._has_come():
                await self._until_gone()
                self.there = await self._whole()
        except (HypervisorError, NodeError):
            return

    async def _has_come(self) -> bool:
        """Wait until all of it is at the target; False where that can no longer be heard."""
        while not isinstance(event := await self._target.events.get(), ConnectionClosed):
            is_pause = isinstance(event, LifecycleChanged) and event.kind == "suspended"
            if is_pause and await self._whole() is not None:
                return True
        return False

    async def _until_gone(self) -> None:
        pause = _FIRST_SECONDS
        while (await self._node.find_traces(self._pod_uid)).emulators:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LAST_SECONDS)

    async def _whole(self) -> Guest | None:
        found = await self._target.guest(self._name)
        return found if found is not None and await found.state() == WHOLE else None
