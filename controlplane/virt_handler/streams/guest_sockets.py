# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens the sockets on which QEMU serves a guest's devices, and says why a stream of a guest has ended.

virt-node proves a socket; nothing is opened by a name that a tenant chooses. The guest's identity is checked as in
api_endpoint/power.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal, Protocol

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.links.handler import Guest, NotDone, bounded_text
from controlplane.links.node.messages import GuestDevice
from controlplane.links.streams import ENDED, MOVED, REPLACED, OpenStream
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError
from controlplane.virt_handler.vmi.liveness import is_own
from controlplane.virt_handler.vmi.world import Launcher

SOCKET_SECONDS = 10.0
"""How long to wait for a socket, which QEMU makes when it starts."""
NAMES: dict[GuestDevice, str] = {"serial": "serial console", "vnc": "graphics device"}


class StreamRefused(Exception):
    """The device cannot be opened; `answer` says why."""

    def __init__(self, kind: Literal["absent", "refused", "busy", "lost"], text: str) -> None:
        super().__init__(text)
        self.answer = NotDone(kind, bounded_text(text))


@dataclass(frozen=True, slots=True)
class End:
    """Why a stream ends: a close code of links.streams, and a sentence."""

    code: int
    reason: str


class LauncherSession(Protocol):
    def launcher(self) -> Launcher: ...


class Launchers(Protocol):
    """The launchers of this node."""

    def session(self, pod_uid: str) -> LauncherSession | None: ...


class Node(Protocol):
    async def open_guest_socket(self, pod_uid: str, device: GuestDevice) -> LauncherSocket:
        """NodeError."""


class GuestSockets:
    """Use it in the main loop."""

    def __init__(self, node_name: str, launchers: Launchers, node: Node, vmis: Cache) -> None:
        self._node_name = node_name
        self._launchers = launchers
        self._node = node
        self._vmis = vmis

    async def open(self, opening: OpenStream) -> LauncherSocket:
        """Open a device's socket. Raises StreamRefused."""
        guest, device = opening.guest, NAMES[opening.device]
        if self._find(guest) is None:
            raise StreamRefused("absent", f"node {self._node_name} has no launcher of this VirtualMachineInstance")
        try:
            async with asyncio.timeout(SOCKET_SECONDS):
                return await self._node.open_guest_socket(guest.pod_uid, opening.device)
        except NodeError as error:
            raise StreamRefused("lost", f"cannot open the {device}: {error}") from error
        except TimeoutError as error:
            text = (
                f"the guest's {device} was not there within {SOCKET_SECONDS:.0f} s: its QEMU has not started, or ended"
            )
            raise StreamRefused("refused", text) from error

    def explain_end(self, guest: Guest) -> End:
        """Say why QEMU has closed a device: by the launcher's Pod, and by the VMI in the cache."""
        launcher = self._find(guest)
        key: Key | None = None if launcher is None else launcher.pod.vmi_key
        raw = None if key is None else self._vmis.get(key)
        try:
            vmi = None if raw is None else decode_vmi(raw)
        except DecodeError:
            vmi = None
        if vmi is None or launcher is None:
            return End(ENDED, "the guest has stopped, or runs on another node")
        if vmi.metadata.uid != guest.vmi_uid:
            return End(REPLACED, "the VirtualMachineInstance was made anew")
        state = vmi.status.migration_state
        if state is not None and not state.failed and state.source_pod_uid == guest.pod_uid:
            return End(MOVED, f"the guest moved to node {state.target_node}: connect again")
        return End(ENDED, "the guest has stopped")

    def _find(self, guest: Guest) -> Launcher | None:
        session = self._launchers.session(guest.pod_uid)
        if guest.node != self._node_name or session is None or not is_own(session.launcher(), guest.vmi_uid):
            return None
        return session.launcher()
