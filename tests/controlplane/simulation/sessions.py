# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers of one node: the real registry and sessions. Exceptions that a session survives are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.ports import NoContact, StartRefused
from tests.controlplane.simulation.libvirt import LauncherConnections


class WatchedRegistry(Registry):
    """report_bug: takes the description of an unexpected exception."""

    def __init__(
        self,
        pods: Cache,
        tools: Tools,
        changed: Callable[[Key], None],
        connections: LauncherConnections,
        *,
        report_bug: Callable[[str], None],
    ) -> None:
        super().__init__(pods, tools, changed)
        self._connections = connections
        self._report_bug = report_bug

    @contextmanager
    def unpausing(self, pod_uid: str) -> Iterator[None]:
        """Record inside the block that a user asks to resume or thaw the guest of that Pod."""
        self._connections.unpaused[pod_uid] += 1
        try:
            yield
        finally:
            self._connections.unpaused[pod_uid] -= 1

    def steps(self) -> list[Callable[[], None]]:
        """Return what can be delivered to sessions now."""
        return self._connections.steps()

    def _add(self, group: asyncio.TaskGroup, pod: Pod, vmi_uid: str, key: Key) -> Session:
        session: Any = super()._add(group, pod, vmi_uid, key)
        session.operations.perform = partial(self._watched, session.operations.perform)
        session.run = partial(self._watched, session.run)
        return session  # type: ignore[no-any-return]

    async def _watched(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        try:
            await function(*arguments)
        except (NoContact, StartRefused):
            raise
        except Exception as bug:
            self._report_bug(f"{function}: {bug!r}")
            raise
