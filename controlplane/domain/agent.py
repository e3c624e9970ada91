# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest's agent is asked, and what is taken of its answers: values, bounded in number and length. Pure.

An answer is the words of whoever is root in the guest. Every list and every text of it has an end here, characters
that are not printable (controls, those that turn the direction of writing) are dropped, addresses must be addresses;
what cannot be read is refused (agent_response.py). When to ask is in virt_handler.launchers.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.agent_response import entries, record, returned, text

INFO = "guest-info"
OS = "guest-get-osinfo"
INTERFACES = "guest-network-get-interfaces"
FREEZE_STATUS = "guest-fsfreeze-status"
FREEZE, THAW = "guest-fsfreeze-freeze", "guest-fsfreeze-thaw"
PING, SHUTDOWN = "guest-ping", "guest-shutdown"

REQUIRED = frozenset(
    f"guest-{name}"
    for name in (
        *("ping", "get-time", "info", "shutdown", "network-get-interfaces", "get-fsinfo", "get-host-name"),
        *("get-users", "get-timezone", "get-osinfo"),
    )
)
"""An agent without one of these is not supported, as upstream."""
_VERSIONS = re.compile(r"[2-5]\.")
"""Of an agent that does not list its commands."""

_COMMANDS_LIMIT, _INTERFACES_LIMIT, ADDRESSES_LIMIT = 256, 64, 8
_NAME_LIMIT, _TEXT_LIMIT, _ADDRESS_LIMIT = 64, 128, 45
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True, slots=True)
class Info:
    """What the agent says of itself."""

    version: str
    missing: tuple[str, ...]
    """Commands that it must have and has not, by name."""


@dataclass(frozen=True, slots=True)
class OsInfo:
    """The guest's operating system."""

    name: str = ""
    kernel_release: str = ""
    version: str = ""
    pretty_name: str = ""
    version_id: str = ""
    kernel_version: str = ""
    machine: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface as the guest sees it."""

    name: str
    mac: str
    """In lower case; "" when the guest tells none that is one."""
    addresses: tuple[str, ...] = ()
    """IPv4 before IPv6, else in the guest's order."""


@dataclass(frozen=True, slots=True)
class Interfaces:
    """The interfaces of a guest, the loopback not among them."""

    listed: tuple[Interface, ...] = ()
    is_cut: bool = False
    """There were more of them, or more addresses of one, than are kept."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """What a guest's agent has told so far."""

    is_connected: bool = False
    """Something in the guest holds the channel open."""
    info: Info | None = None
    """None: not told."""
    os: OsInfo | None = None
    interfaces: Interfaces | None = None
    is_frozen: bool | None = None
    """Its file systems take no writes. None: not told."""

    @property
    def is_whole(self) -> bool:
        """Everything was told once."""
        return self.info is not None and self.os is not None and self.interfaces is not None


def question(command: str, arguments: Mapping[str, str] | None = None) -> str:
    """Spell a command as the agent reads it."""
    asked: dict[str, Any] = {"execute": command}
    if arguments:
        asked["arguments"] = dict(arguments)
    return json.dumps(asked, separators=(",", ":"))


def read_info(answer: str) -> Info:
    """Read the answer to INFO. UnreadableResponse."""
    said = record(answer)
    version = text(said.get("version"), _NAME_LIMIT)
    listed = entries(said.get("supported_commands"))[:_COMMANDS_LIMIT]
    enabled = {name for one in listed if (name := _name_if_enabled(one))}
    if not listed and _VERSIONS.match(version):
        return Info(version, ())
    return Info(version, tuple(sorted(REQUIRED - enabled)))


def read_os(answer: str) -> OsInfo:
    """Read the answer to OS. UnreadableResponse."""
    said = record(answer)

    def word(key: str) -> str:
        return text(said.get(key), _TEXT_LIMIT)

    return OsInfo(
        name=word("name"),
        kernel_release=word("kernel-release"),
        version=word("version"),
        pretty_name=word("pretty-name"),
        version_id=word("version-id"),
        kernel_version=word("kernel-version"),
        machine=word("machine"),
        id=word("id"),
    )


def read_interfaces(answer: str) -> Interfaces:
    """Read the answer to INTERFACES. UnreadableResponse."""
    found, is_cut = [], False
    listed = entries(returned(answer))
    for said in listed[:_INTERFACES_LIMIT]:
        if not isinstance(said, dict) or (name := text(said.get("name"), _NAME_LIMIT)) in ("", "lo"):
            continue
        mac = text(said.get("hardware-address"), _NAME_LIMIT).lower()
        told = entries(said.get("ip-addresses"))
        addresses = sorted(_addresses(told[:ADDRESSES_LIMIT]), key=lambda one: ":" in one)
        found.append(Interface(name, mac if _MAC.fullmatch(mac) else "", tuple(addresses)))
        is_cut = is_cut or len(told) > ADDRESSES_LIMIT
    return Interfaces(tuple(found), is_cut=is_cut or len(listed) > _INTERFACES_LIMIT)


def read_freeze_status(answer: str) -> bool:
    """Read the answer to FREEZE_STATUS: whether file systems are frozen. UnreadableResponse."""
    return text(returned(answer), _NAME_LIMIT) == "frozen"


def _name_if_enabled(command: Any) -> str:
    if not isinstance(command, dict) or command.get("enabled") is not True:
        return ""
    return text(command.get("name"), _NAME_LIMIT)


def _addresses(told: list[Any]) -> Iterator[str]:
    for one in told:
        said = one.get("ip-address") if isinstance(one, dict) else None
        if not isinstance(said, str) or len(said) > _ADDRESS_LIMIT or "%" in said:
            continue
        try:
            yield str(ipaddress.ip_address(said))
        except ValueError:
            continue
