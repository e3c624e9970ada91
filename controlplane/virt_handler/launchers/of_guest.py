# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the launcher of the guest that virt-api names in a request.

The Pod of that UID is on this node, the VMI controls it, and the domain has both UIDs.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from controlplane.links.handler import Guest, NotDone
from controlplane.virt_handler.vmi.liveness import is_own
from controlplane.virt_handler.vmi.world import Launcher


class LauncherSession(Protocol):
    """The session of a launcher."""

    def launcher(self) -> Launcher: ...


Session_co = TypeVar("Session_co", bound=LauncherSession, covariant=True)


class Launchers(Protocol[Session_co]):
    """The launchers of this node."""

    def session(self, pod_uid: str) -> Session_co | None: ...


def find_session(node_name: str, launchers: Launchers[Session_co], guest: Guest) -> Session_co | None:
    """Return the session of a guest's launcher; None if this node has none."""
    session = launchers.session(guest.pod_uid)
    if guest.node != node_name or session is None or not is_own(session.launcher(), guest.vmi_uid):
        return None
    return session


def absent(node_name: str) -> NotDone:
    """Return the response to a request for a guest that this node does not have."""
    return NotDone("absent", f"node {node_name} has no launcher of this VirtualMachineInstance")
