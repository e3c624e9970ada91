# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens the sockets on which QEMU serves a guest's devices, and says why a stream of a guest has ended.

virt-node proves a socket; nothing is opened by a name that a tenant chooses. The guest's identity is checked:
launchers/of_guest.py.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from kubevirt_api.close_codes import ENDED, MOVED, REPLACED

from controlplane.api.objects.decode import readable_vmi
from controlplane.api.objects.pod import sanitize
from controlplane.engine.ports import Cache
from controlplane.links.handler import Guest, NotDone, bounded_text
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream
from controlplane.virt_handler.launchers.of_guest import Launchers, LauncherSession, absent, find_session
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError

log = logging.getLogger(__name__)

SOCKET_SECONDS = 10.0
"""How long to wait for a socket, which QEMU makes when it starts."""
BACKLOG_SECONDS = 2.0
"""How long to wait for the log of a console. Meanwhile nobody reads the console, and its guest may wait."""
NAMES: dict[GuestDevice, str] = {"serial": "serial console", "vnc": "graphics device"}


class StreamRefused(Exception):
    """The device cannot be opened; `answer` says why."""

    def __init__(self, answer: NotDone) -> None:
        super().__init__(answer.text)
        self.answer = answer


class Node(Protocol):
    async def open_guest_socket(self, pod_uid: str, device: GuestDevice) -> LauncherSocket:
        """NodeError."""

    async def read_console_backlog(self, pod_uid: str) -> bytes:
        """NodeError."""


class GuestSockets:
    """Use it in the main loop."""

    def __init__(self, node_name: str, launchers: Launchers[LauncherSession], node: Node, vmis: Cache) -> None:
        self._node_name = node_name
        self._launchers = launchers
        self._node = node
        self._vmis = vmis

    async def open(self, opening: OpenStream) -> LauncherSocket:
        """Open a device's socket. Raises StreamRefused."""
        guest, device = opening.guest, NAMES[opening.device]
        if find_session(self._node_name, self._launchers, guest) is None:
            raise StreamRefused(absent(self._node_name))
        try:
            async with asyncio.timeout(SOCKET_SECONDS):
                return await self._node.open_guest_socket(guest.pod_uid, opening.device)
        except NodeError as error:
            raise StreamRefused(NotDone("lost", bounded_text(f"cannot open the {device}: {error}"))) from error
        except TimeoutError as error:
            text = (
                f"the guest's {device} was not there within {SOCKET_SECONDS:.0f} s: its QEMU has not started, or ended"
            )
            raise StreamRefused(NotDone("refused", text)) from error

    async def read_backlog(self, guest: Guest) -> bytes:
        """Return the last bytes that a guest has printed on its console; none if they cannot be read."""
        if find_session(self._node_name, self._launchers, guest) is None:
            return b""
        try:
            async with asyncio.timeout(BACKLOG_SECONDS):
                return await self._node.read_console_backlog(guest.pod_uid)
        except (NodeError, TimeoutError) as error:
            reason = sanitize(str(error)) or f"it was not read within {BACKLOG_SECONDS:g} s"
            log.warning("a console begins without its backlog", extra={"pod": guest.pod_uid, "error": reason})
            return b""

    async def explain_end(self, guest: Guest) -> Close:
        """Say why QEMU has closed a device: by the launcher's Pod, and by the VMI in the cache."""
        session = find_session(self._node_name, self._launchers, guest)
        key = None if session is None else session.launcher().pod.vmi_key
        vmi = None if key is None else readable_vmi(self._vmis.get(key))
        if vmi is None:
            return Close(ENDED, "the guest has stopped, or runs on another node")
        if vmi.metadata.uid != guest.vmi_uid:
            return Close(REPLACED, "the VirtualMachineInstance was replaced")
        state = vmi.status.migration_state
        if state is not None and not state.failed and state.source_pod_uid == guest.pod_uid:
            return Close(MOVED, f"the guest moved to node {state.target_node}: connect again")
        return Close(ENDED, "the guest has stopped")
