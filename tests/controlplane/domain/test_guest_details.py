# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest details that a user can read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.guest_info import GuestAgentInfo
from controlplane.domain import agent
from controlplane.domain import guest_details as details

LIMIT = 60 << 10


def read(**answers: Any) -> Any:
    commands = {"info": agent.INFO, "osinfo": agent.OS, "host": details.HOST_NAME, "zone": details.TIME_ZONE}
    commands |= {"users": details.USERS, "fs": details.FILE_SYSTEMS, "frozen": agent.FREEZE_STATUS}
    raw = {commands[key]: json.dumps({"return": value}) for key, value in answers.items()}
    details_read = msgspec.json.decode(msgspec.json.encode(details.read_details(raw, LIMIT)))
    return {name: value for name, value in details_read.items() if value}


def test_the_agents_answers_get_upstreams_field_names() -> None:
    result = read(
        info={"version": "9.2.0", "supported_commands": [{"name": "guest-ping", "enabled": True, "success": 1}]},
        osinfo={"id": "debian", "pretty-name": "Debian"},
        host={"host-name": "web-1"},
        zone={"zone": "CET", "offset": 3600},
        users=[{"user": "root", "domain": "corp", "login-time": 1700000000.5}],
        fs=[
            {
                "name": "vda1",
                "mountpoint": "/",
                "type": "ext4",
                "used-bytes": 5,
                "total-bytes": 10,
                "disk": [{"serial": "s", "bus-type": "virtio", "bus": 0}],
            }
        ],
        frozen="thawed",
    )
    assert result == {
        "guestAgentVersion": "9.2.0",
        "supportedCommands": [{"name": "guest-ping", "enabled": True}],
        "hostname": "web-1",
        "os": {"id": "debian", "prettyName": "Debian"},
        "timezone": "CET, 3600",
        "userList": [{"userName": "root", "domain": "corp", "loginTime": 1700000000.5}],
        "fsInfo": {
            "disks": [
                {
                    "diskName": "vda1",
                    "mountPoint": "/",
                    "fileSystemType": "ext4",
                    "usedBytes": 5,
                    "totalBytes": 10,
                    "disk": [{"serial": "s", "busType": "virtio"}],
                }
            ]
        },
        "fsFreezeStatus": "thawed",
    }


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, {}),
        (
            {"users": [{"user": "a", "login-time": 10**400}], "zone": {"zone": "UTC", "offset": 10**4000}},
            {"userList": [{"userName": "a", "loginTime": 0.0}], "timezone": "UTC"},
        ),
        (
            {"users": [{"user": "a", "login-time": True}, 7, {"user": ["x"]}]},
            {"userList": [{"userName": "a", "loginTime": 0.0}, {"userName": "", "loginTime": 0.0}]},
        ),
        ({"users": {"user": "root"}, "fs": "no", "info": [], "host": 3, "zone": [], "osinfo": None}, {}),
    ],
    ids=["nothing", "numbers beyond all numbers", "strange users", "nonsense"],
)
def test_invalid_answers_are_left_out(answers: dict[str, Any], expected: Any) -> None:
    assert read(**answers) == expected


def test_an_invalid_size_is_zero() -> None:
    (disk,) = read(fs=[{"used-bytes": -1, "total-bytes": True}])["fsInfo"]["disks"]
    assert (disk["usedBytes"], disk["totalBytes"]) == (0, 0)


@pytest.mark.parametrize(
    ("reported", "seconds"), [(0.5, 0.5), (-1, 0.0), (1 << 40, 0.0), (True, 0.0), ("7", 0.0)], ids=repr
)
def test_an_invalid_login_time_is_zero(reported: Any, seconds: float) -> None:
    (user,) = read(users=[{"user": "root", "login-time": reported}])["userList"]
    assert user["loginTime"] == seconds


@pytest.mark.parametrize("answer", ["", "no JSON", "[" * 60_000, '{"error":{}}', '{"return":"\ud800"}'])
def test_an_unreadable_answer_counts_as_missing(answer: str) -> None:
    every = {command for commands in details.COMMANDS.values() for command in commands}
    assert details.read_details(dict.fromkeys(every, answer), LIMIT) == GuestAgentInfo()


def test_the_largest_details_fit_into_a_response() -> None:
    text = '\u20ac"\\' * 400
    disk = {"serial": text, "bus-type": text}
    system = {"name": text, "mountpoint": text, "type": text, "disk": [disk] * 9}
    result = read(
        info={"version": text, "supported_commands": [{"name": text, "enabled": True}] * 257},
        osinfo=dict.fromkeys(("name", "version", "pretty-name", "id", "machine", "kernel-version"), text),
        users=[{"user": text, "domain": text, "login-time": 1.0}] * 33,
        fs=[system] * 65,
        host={"host-name": text},
    )
    assert len(msgspec.json.encode(result)) <= LIMIT
    assert len(result["userList"]) == 32
    assert result["fsInfo"]["disks"]
