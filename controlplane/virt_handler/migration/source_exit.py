# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detects at once that a guest has left the source. libvirt polls for QEMU's end only five times a second.

The proof comes from virt-node: the launcher's Pod has no QEMU any more. It counts only between two looks that find the
whole guest at the target, through the connection that also carries the target's confirmation. If the confirmation is
lost, the guest resumes at the source and may exit later. Then that connection is lost too, and the second look fails.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.events import ConnectionClosed, LifecycleChanged
from controlplane.virt_handler.launchers.ports import NodeError
from controlplane.virt_handler.vmi.world import Traces

WHOLE = State(Life.PAUSED, "user")
"""The state of the domain at the target when it has all of the guest."""
_WAIT_SECONDS = 0.5
"""How long virt-node waits for the end of QEMU, which usually takes a tenth of a second."""
_FIRST_SECONDS, _LAST_SECONDS = 0.02, 0.5
"""First and longest pause between such waits. A virt-node of an older release does not wait."""


class FindTraces(Protocol):
    """The part of virt-node's client that is needed here."""

    async def find_traces(self, pod_uid: str, *, wait_seconds: float) -> Traces: ...


class SourceExit:
    """Watches one guest. `there` is the guest at the target, once QEMU at the source has ended."""

    def __init__(self, node: FindTraces, pod_uid: str, name: str, target: Connection) -> None:
        """name: name of the domain. target: the connection through which libvirt sends the guest."""
        self._node = node
        self._pod_uid = pod_uid
        self._name = name
        self._target = target
        self.there: Domain | None = None

    async def watch(self) -> None:
        """Wait until the guest has left. Returns early, without `there`, if that cannot be proven."""
        try:
            if await self._wait_for_arrival():
                await self._until_gone()
                self.there = await self._whole_guest()
        except (HypervisorError, NodeError):
            return

    async def _wait_for_arrival(self) -> bool:
        """Wait until all of the guest is at the target; False when the connection is lost."""
        while not isinstance(event := await self._target.events.get(), ConnectionClosed):
            is_pause = isinstance(event, LifecycleChanged) and event.kind == "suspended"
            if is_pause and await self._whole_guest() is not None:
                return True
        return False

    async def _until_gone(self) -> None:
        pause = _FIRST_SECONDS
        while (await self._node.find_traces(self._pod_uid, wait_seconds=_WAIT_SECONDS)).emulators:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LAST_SECONDS)

    async def _whole_guest(self) -> Domain | None:
        guest = await self._target.guest(self._name)
        return guest if guest is not None and await guest.state() == WHOLE else None
