# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a guest's agent, and values from its responses, bounded in number and length. Pure.

A response is written by root of the guest. Here every list and text is cut to a limit, characters that are not
printable (control characters, changes of writing direction) are dropped, and addresses must be addresses. What cannot
be read is refused (agent_response.py). virt_handler.launchers decides when to ask.
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
"""Commands that a supported agent has, as upstream."""
_VERSIONS = re.compile(r"[2-5]\.")
"""Supported versions of agents that do not list their commands."""

_COMMANDS_LIMIT, _INTERFACES_LIMIT, ADDRESSES_LIMIT = 256, 64, 8
_NAME_LIMIT, _TEXT_LIMIT, _ADDRESS_LIMIT = 64, 128, 45
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True, slots=True)
class Info:
    """The agent's version and commands."""

    version: str
    missing: tuple[str, ...]
    """Required commands that it does not have, by name."""


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
    """A network interface as the guest reports it."""

    name: str
    mac: str
    """In lower case; "" when the guest reports no valid address."""
    addresses: tuple[str, ...] = ()
    """IPv4 before IPv6, otherwise in the guest's order."""


@dataclass(frozen=True, slots=True)
class Interfaces:
    """The interfaces of a guest, without the loopback."""

    listed: tuple[Interface, ...] = ()
    is_cut: bool = False
    """Interfaces or addresses were dropped because of the limits."""


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of a guest's agent, and its reports."""

    is_connected: bool = False
    """A process in the guest has the channel open."""
    info: Info | None = None
    """None: not reported."""
    os: OsInfo | None = None
    interfaces: Interfaces | None = None
    is_frozen: bool | None = None
    """Whether the guest's file systems are frozen. None: not reported."""

    @property
    def is_whole(self) -> bool:
        """Everything was reported at least once."""
        return self.info is not None and self.os is not None and self.interfaces is not None


def request(command: str, arguments: Mapping[str, str] | None = None) -> str:
    """Encode a request to the agent."""
    message: dict[str, Any] = {"execute": command}
    if arguments:
        message["arguments"] = dict(arguments)
    return json.dumps(message, separators=(",", ":"))


def read_info(response: str) -> Info:
    """Parse the response to INFO. UnreadableResponse."""
    info = record(response)
    version = text(info.get("version"), _NAME_LIMIT)
    listed = entries(info.get("supported_commands"))[:_COMMANDS_LIMIT]
    enabled = {name for command in listed if (name := _name_if_enabled(command))}
    if not listed and _VERSIONS.match(version):
        return Info(version, ())
    return Info(version, tuple(sorted(REQUIRED - enabled)))


def read_os(response: str) -> OsInfo:
    """Parse the response to OS. UnreadableResponse."""
    fields = record(response)

    def word(key: str) -> str:
        return text(fields.get(key), _TEXT_LIMIT)

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


def read_interfaces(response: str) -> Interfaces:
    """Parse the response to INTERFACES. UnreadableResponse."""
    interfaces, is_cut = [], False
    listed = entries(returned(response))
    for interface in listed[:_INTERFACES_LIMIT]:
        if not isinstance(interface, dict) or (name := text(interface.get("name"), _NAME_LIMIT)) in ("", "lo"):
            continue
        mac = text(interface.get("hardware-address"), _NAME_LIMIT).lower()
        reported = entries(interface.get("ip-addresses"))
        addresses = sorted(_addresses(reported[:ADDRESSES_LIMIT]), key=lambda address: ":" in address)
        interfaces.append(Interface(name, mac if _MAC.fullmatch(mac) else "", tuple(addresses)))
        is_cut = is_cut or len(reported) > ADDRESSES_LIMIT
    return Interfaces(tuple(interfaces), is_cut=is_cut or len(listed) > _INTERFACES_LIMIT)


def read_freeze_status(response: str) -> bool:
    """Parse the response to FREEZE_STATUS: whether file systems are frozen. UnreadableResponse."""
    return text(returned(response), _NAME_LIMIT) == "frozen"


def _name_if_enabled(command: Any) -> str:
    if not isinstance(command, dict) or command.get("enabled") is not True:
        return ""
    return text(command.get("name"), _NAME_LIMIT)


def _addresses(reported: list[Any]) -> Iterator[str]:
    for entry in reported:
        address = entry.get("ip-address") if isinstance(entry, dict) else None
        # A zone (%eth0) is free text of the guest.
        if not isinstance(address, str) or len(address) > _ADDRESS_LIMIT or "%" in address:
            continue
        try:
            yield str(ipaddress.ip_address(address))
        except ValueError:
            continue
