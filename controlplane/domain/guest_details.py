# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users can ask a guest's agent for, and the bounded lists made of its responses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from controlplane.api.objects.guest_info import (
    GuestAgentInfo,
    GuestCommand,
    GuestDisk,
    GuestFileSystem,
    GuestFileSystems,
    GuestUser,
)
from controlplane.api.objects.vmi.status import GuestOsInfo
from controlplane.domain import agent
from controlplane.domain.agent_response import UnreadableResponse, entries, record, records, returned, text

HOST_NAME, TIME_ZONE = "guest-get-host-name", "guest-get-timezone"
USERS, FILE_SYSTEMS = "guest-get-users", "guest-get-fsinfo"

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "guestosinfo": (agent.INFO, agent.OS, HOST_NAME, TIME_ZONE, USERS, FILE_SYSTEMS, agent.FREEZE_STATUS),
    "userlist": (USERS,),
    "filesystemlist": (FILE_SYSTEMS,),
}
"""Agent commands for each subresource."""

_COMMANDS_LIMIT, _USERS_LIMIT, _FILE_SYSTEMS_LIMIT, _DISKS_LIMIT = 256, 32, 64, 8
_SECONDS_LIMIT, _DAY_SECONDS = 1 << 40, 86400
"""A number in JSON may have thousands of digits, which no float can hold."""
_WORD_LIMIT, _PATH_LIMIT, _HOST_NAME_LIMIT = 64, 256, 253


def read_details(responses: Mapping[str, str], limit_bytes: int) -> GuestAgentInfo:
    """Parse the agent's responses, by command. What it refused or what cannot be read stays empty.

    limit_bytes: of the result as JSON. File systems and commands are dropped until it fits.
    """
    info = _object(responses, agent.INFO)
    details = GuestAgentInfo(
        guest_agent_version=text(info.get("version"), _WORD_LIMIT),
        supported_commands=_commands(info),
        hostname=text(_object(responses, HOST_NAME).get("host-name"), _HOST_NAME_LIMIT),
        os=_system(responses),
        timezone=_time_zone(_object(responses, TIME_ZONE)),
        user_list=_users(_value(responses, USERS)),
        fs_info=GuestFileSystems(disks=_file_systems(_value(responses, FILE_SYSTEMS))),
        fs_freeze_status=text(_value(responses, agent.FREEZE_STATUS), _WORD_LIMIT),
    )
    keep = max(_COMMANDS_LIMIT, _FILE_SYSTEMS_LIMIT)
    while len(msgspec.json.encode(details)) > limit_bytes:
        keep //= 2
        details = msgspec.structs.replace(
            details,
            supported_commands=details.supported_commands[:keep],
            fs_info=GuestFileSystems(disks=details.fs_info.disks[:keep]),
        )
    return details


def _value(responses: Mapping[str, str], command: str) -> Any:
    try:
        return returned(responses[command]) if command in responses else None
    except UnreadableResponse:
        return None


def _object(responses: Mapping[str, str], command: str) -> dict[str, Any]:
    try:
        return record(responses[command]) if command in responses else {}
    except UnreadableResponse:
        return {}


def _commands(info: dict[str, Any]) -> tuple[GuestCommand, ...]:
    return tuple(
        GuestCommand(name=text(command.get("name"), _WORD_LIMIT), enabled=command.get("enabled") is True)
        for command in records(info.get("supported_commands"), _COMMANDS_LIMIT)
    )


def _system(responses: Mapping[str, str]) -> GuestOsInfo:
    try:
        system = agent.read_os(responses[agent.OS]) if agent.OS in responses else agent.OsInfo()
    except UnreadableResponse:
        system = agent.OsInfo()
    return GuestOsInfo(**{name: getattr(system, name) for name in system.__slots__})


def _time_zone(value: dict[str, Any]) -> str:
    """Return it as upstream does: the zone's name, a comma, the seconds from UTC."""
    # A JSON integer can have thousands of digits.
    zone, offset = text(value.get("zone"), _WORD_LIMIT), value.get("offset")
    return f"{zone}, {offset}" if isinstance(offset, int) and abs(offset) <= _DAY_SECONDS else zone


def _users(value: Any) -> tuple[GuestUser, ...]:
    return tuple(
        GuestUser(
            user_name=text(user.get("user"), _WORD_LIMIT),
            domain=text(user.get("domain"), _WORD_LIMIT),
            login_time=_seconds(user.get("login-time")),
        )
        for user in records(value, _USERS_LIMIT)
    )


def _seconds(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _SECONDS_LIMIT else 0.0


def _file_systems(value: Any) -> tuple[GuestFileSystem, ...]:
    return tuple(
        GuestFileSystem(
            disk_name=text(file_system.get("name"), _WORD_LIMIT),
            mount_point=text(file_system.get("mountpoint"), _PATH_LIMIT),
            file_system_type=text(file_system.get("type"), _WORD_LIMIT),
            used_bytes=_bytes(file_system.get("used-bytes")),
            total_bytes=_bytes(file_system.get("total-bytes")),
            disk=tuple(
                GuestDisk(
                    serial=text(disk.get("serial"), _WORD_LIMIT), bus_type=text(disk.get("bus-type"), _WORD_LIMIT)
                )
                for disk in records(entries(file_system.get("disk")), _DISKS_LIMIT)
            ),
        )
        for file_system in records(value, _FILE_SYSTEMS_LIMIT)
    )


def _bytes(value: Any) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1 << 63 else 0
