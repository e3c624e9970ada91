# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest's agent is asked when a person asks, and what is made of its answers: lists with an end. Pure."""

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
"""By what a person asks about: what has to be asked of the agent."""

_COMMANDS_LIMIT, _USERS_LIMIT, _FILE_SYSTEMS_LIMIT, _DISKS_LIMIT = 256, 32, 64, 8
_SECONDS_LIMIT, _DAY_SECONDS = 1 << 40, 86400
"""A number of JSON may have four thousand digits, which are neither a float's nor a person's to read."""
_WORD_LIMIT, _PATH_LIMIT, _HOST_NAME_LIMIT = 64, 256, 253


def read_details(answers: Mapping[str, str], limit_bytes: int) -> GuestAgentInfo:
    """Read what the agent has answered, by command. Of what it refused or garbled nothing is told.

    limit_bytes: of the whole as JSON; file systems and commands are left out until it fits.
    """
    info = _object(answers, agent.INFO)
    details = GuestAgentInfo(
        guest_agent_version=text(info.get("version"), _WORD_LIMIT),
        supported_commands=_commands(info),
        hostname=text(_object(answers, HOST_NAME).get("host-name"), _HOST_NAME_LIMIT),
        os=_system(answers),
        timezone=_time_zone(_object(answers, TIME_ZONE)),
        user_list=_users(_value(answers, USERS)),
        fs_info=GuestFileSystems(disks=_file_systems(_value(answers, FILE_SYSTEMS))),
        fs_freeze_status=text(_value(answers, agent.FREEZE_STATUS), _WORD_LIMIT),
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


def _value(answers: Mapping[str, str], command: str) -> Any:
    try:
        return returned(answers[command]) if command in answers else None
    except UnreadableResponse:
        return None


def _object(answers: Mapping[str, str], command: str) -> dict[str, Any]:
    try:
        return record(answers[command]) if command in answers else {}
    except UnreadableResponse:
        return {}


def _commands(info: dict[str, Any]) -> tuple[GuestCommand, ...]:
    return tuple(
        GuestCommand(name=text(one.get("name"), _WORD_LIMIT), enabled=one.get("enabled") is True)
        for one in records(info.get("supported_commands"), _COMMANDS_LIMIT)
    )


def _system(answers: Mapping[str, str]) -> GuestOsInfo:
    try:
        said = agent.read_os(answers[agent.OS]) if agent.OS in answers else agent.OsInfo()
    except UnreadableResponse:
        said = agent.OsInfo()
    return GuestOsInfo(**{name: getattr(said, name) for name in said.__slots__})


def _time_zone(said: dict[str, Any]) -> str:
    """Spell it as upstream: the zone's name, a comma, the seconds from UTC."""
    zone, offset = text(said.get("zone"), _WORD_LIMIT), said.get("offset")
    return f"{zone}, {offset}" if isinstance(offset, int) and abs(offset) <= _DAY_SECONDS else zone


def _users(value: Any) -> tuple[GuestUser, ...]:
    return tuple(
        GuestUser(
            user_name=text(one.get("user"), _WORD_LIMIT),
            domain=text(one.get("domain"), _WORD_LIMIT),
            login_time=_seconds(one.get("login-time")),
        )
        for one in records(value, _USERS_LIMIT)
    )


def _seconds(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _SECONDS_LIMIT else 0.0


def _file_systems(value: Any) -> tuple[GuestFileSystem, ...]:
    return tuple(
        GuestFileSystem(
            disk_name=text(one.get("name"), _WORD_LIMIT),
            mount_point=text(one.get("mountpoint"), _PATH_LIMIT),
            file_system_type=text(one.get("type"), _WORD_LIMIT),
            used_bytes=_bytes(one.get("used-bytes")),
            total_bytes=_bytes(one.get("total-bytes")),
            disk=tuple(
                GuestDisk(
                    serial=text(disk.get("serial"), _WORD_LIMIT), bus_type=text(disk.get("bus-type"), _WORD_LIMIT)
                )
                for disk in records(entries(one.get("disk")), _DISKS_LIMIT)
            ),
        )
        for one in records(value, _FILE_SYSTEMS_LIMIT)
    )


def _bytes(value: Any) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1 << 63 else 0
