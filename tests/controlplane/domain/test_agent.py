# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the answers of a guest agent: valid ones, and limits for hostile ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from controlplane.domain import agent
from controlplane.domain.agent import Info, Interface, Interfaces, OsInfo
from controlplane.domain.agent_response import UnreadableResponse

LIMIT = 64 << 10
"""The longest answer that hypervisor/ passes on."""


def returned(value: Any) -> str:
    return json.dumps({"return": value})


def commands(*without: str, **enabled: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "enabled": enabled.get(name.replace("-", "_"), True)} for name in agent.REQUIRED - {*without}
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param({"version": "9.2.0", "supported_commands": commands()}, Info("9.2.0", ()), id="all"),
        pytest.param(
            {"version": "9.2.0", "supported_commands": commands("guest-ping")},
            Info("9.2.0", ("guest-ping",)),
            id="less",
        ),
        pytest.param(
            {"version": "9.2.0", "supported_commands": commands(guest_ping=False)},
            Info("9.2.0", ("guest-ping",)),
            id="one is switched off",
        ),
        pytest.param(
            {"version": "9.2.0", "supported_commands": commands(guest_ping="yes")},
            Info("9.2.0", ("guest-ping",)),
            id="one says something else than that it is on",
        ),
        pytest.param({"version": "2.12.0"}, Info("2.12.0", ()), id="old, lists none"),
        pytest.param(
            {"version": "5.2.0", "supported_commands": commands("guest-ping")},
            Info("5.2.0", ("guest-ping",)),
            id="old, and lists what it has",
        ),
        pytest.param({"version": "1.0"}, Info("1.0", tuple(sorted(agent.REQUIRED))), id="too old, lists none"),
        pytest.param(
            {"version": ["9"], "supported_commands": [[], 1, {"name": {}, "enabled": True}]},
            Info("", tuple(sorted(agent.REQUIRED))),
            id="nonsense",
        ),
    ],
)
def test_missing_required_commands_are_reported(response: Any, expected: Info) -> None:
    assert agent.read_info(returned(response)) == expected


@pytest.mark.parametrize("longest", [0, 1], ids=["the first", "the last"])
def test_leaving_out_addresses_of_any_interface_marks_the_list_as_cut(longest: int) -> None:
    many = [{"ip-address": f"10.0.0.{number}"} for number in range(agent.ADDRESSES_LIMIT + 1)]
    interfaces = [
        {"name": f"eth{number}", "ip-addresses": many if number == longest else many[:1]} for number in range(2)
    ]

    assert agent.read_interfaces(returned(interfaces)).is_cut


def test_the_operating_system_is_read() -> None:
    answer = {
        "id": "debian",
        "name": "Debian GNU/Linux",
        "pretty-name": "Debian GNU/Linux 13 (trixie)",
        "version": "13 (trixie)",
        "version-id": "13",
        "machine": "x86_64",
        "kernel-release": "6.12.38",
        "kernel-version": "#1 SMP",
        "variant": "not ours",
    }
    assert agent.read_os(returned(answer)) == OsInfo(
        name="Debian GNU/Linux",
        kernel_release="6.12.38",
        version="13 (trixie)",
        pretty_name="Debian GNU/Linux 13 (trixie)",
        version_id="13",
        kernel_version="#1 SMP",
        machine="x86_64",
        id="debian",
    )


def addresses(*listed: Any) -> list[dict[str, Any]]:
    return [{"ip-address-type": "ipv4", "ip-address": address, "prefix": 24} for address in listed]


def test_all_interfaces_except_the_loopback_are_read() -> None:
    answer = [
        {"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": addresses("127.0.0.1")},
        {"name": "eth0", "hardware-address": "02:00:00:00:00:0A", "ip-addresses": addresses("fe80::1", "10.0.2.2")},
        {"name": "tun0"},
    ]
    eth0 = Interface("eth0", "02:00:00:00:00:0a", ("10.0.2.2", "fe80::1"))
    assert agent.read_interfaces(returned(answer)) == Interfaces((eth0, Interface("tun0", "")))


def test_invalid_addresses_are_left_out() -> None:
    answer = addresses("10.0.2.2", "<script>", "10.0.0.0/8", "fe80::1%eth0", 7, None, "1" * 46)
    (read,) = agent.read_interfaces(returned([{"name": "x", "hardware-address": "no", "ip-addresses": answer}])).listed
    assert read == Interface("x", "", ("10.0.2.2",))


def test_more_than_the_limit_is_cut_and_marked_as_cut() -> None:
    many = addresses(*(f"10.0.0.{number}" for number in range(9)))
    assert agent.read_interfaces(returned([{"name": "x", "ip-addresses": many}])).is_cut
    assert not agent.read_interfaces(returned([{"name": "x", "ip-addresses": many[:8]}])).is_cut
    flood = agent.read_interfaces(returned([{"name": f"n{number}"} for number in range(1000)]))
    assert (len(flood.listed), flood.is_cut) == (64, True)


def test_a_text_is_one_printable_line_of_limited_length() -> None:
    """Characters that change the writing direction can make one name look like another."""
    read = agent.read_os(returned({"name": "a\u202eb\x1b[31mc\nd\u200f\u2066", "id": "x" * 1000, "machine": 7}))
    assert (read.name, read.id, read.machine) == ("ab[31mcd", "x" * 128, "")


@pytest.mark.parametrize("read", [agent.read_info, agent.read_os, agent.read_interfaces])
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no JSON",
        '{"return":',
        "[]",
        '{"error":{}}',
        '{"return":NaN}',
        '{"return":{"name":1e999999}}',
        '{"return":' + "9" * (LIMIT - 20) + "}",
        '{"return":' + "[" * (LIMIT - 20),
        '{"return":"\ud800"}',
        '{"return":"\\ud800"}',
    ],
)
def test_an_unreadable_answer_raises_only_unreadable_response(read: Callable[[str], Any], answer: str) -> None:
    with pytest.raises(UnreadableResponse):
        read(answer)


def test_the_largest_answers_are_cut_to_a_small_size() -> None:
    text = "\u20ac" * 2000
    many = [f"fd00:1111:2222:3333:4444:5555:6666:{number:x}" for number in range(100)]
    interfaces = [{"name": text, "hardware-address": text, "ip-addresses": addresses(*many)} for _unused in range(100)]
    assert len(msgspec.json.encode(agent.read_interfaces(returned(interfaces)))) < 48 << 10
    fields = ("name", "version", "pretty-name", "version-id", "kernel-release", "kernel-version", "machine", "id")
    assert len(msgspec.json.encode(agent.read_os(returned(dict.fromkeys(fields, text))))) < 4 << 10
