# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details that a guest's agent reports: responses of guestosinfo, userlist and filesystemlist. Types only.

Nothing here is stored, and nothing is a kind of its own; the names of the fields are upstream's.
"""

from __future__ import annotations

from controlplane.api.objects.meta import Node
from controlplane.api.objects.vmi.status import GuestOsInfo


class GuestCommand(Node, frozen=True, kw_only=True):
    """A command that the agent knows."""

    name: str
    enabled: bool


class GuestUser(Node, frozen=True, kw_only=True):
    """Somebody who is logged in."""

    user_name: str
    domain: str = ""
    login_time: float = 0.0
    """Seconds since the epoch."""


class GuestDisk(Node, frozen=True, kw_only=True):
    """A disk that a file system is on."""

    serial: str = ""
    bus_type: str = ""


class GuestFileSystem(Node, frozen=True, kw_only=True):
    """A file system that is mounted. Sizes in bytes."""

    disk_name: str
    mount_point: str
    file_system_type: str
    used_bytes: int
    total_bytes: int
    disk: tuple[GuestDisk, ...] = ()


class GuestFileSystems(Node, frozen=True, kw_only=True):
    """Those of one guest."""

    disks: tuple[GuestFileSystem, ...] = ()


class GuestAgentInfo(Node, frozen=True, kw_only=True):
    """Everything that a guest's agent tells of its guest."""

    guest_agent_version: str = ""
    supported_commands: tuple[GuestCommand, ...] = ()
    hostname: str = ""
    os: GuestOsInfo = GuestOsInfo()
    timezone: str = ""
    user_list: tuple[GuestUser, ...] = ()
    fs_info: GuestFileSystems = GuestFileSystems()
    fs_freeze_status: str = ""
