# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a VMI's status that the guest's agent reports: conditions, operating system, interfaces. Pure.

It informs users, and no decision depends on it. The VMI's own interfaces keep the Pod's addresses: clients reach a
masqueraded guest there, not at the addresses that it reports. This module limits the number of interfaces, and
domain/agent.py the length of each text; the condition says when something was cut.
"""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.vmi.instance import InterfaceStatus, VirtualMachineInstanceStatus
from controlplane.api.objects.vmi.status import GuestOsInfo
from controlplane.domain.agent import AgentState, Interface

GUEST_ONLY_LIMIT = 10
"""Limit of interfaces that only the guest has (for a container, a bridge), as upstream."""
FROZEN = "frozen"
TRUNCATED = "GuestInfoTruncated"
_BY_AGENT = "guest-agent"
KINDS = (condition_types.AGENT_CONNECTED, condition_types.AGENT_VERSION_NOT_SUPPORTED)


def with_agent_report(status: VirtualMachineInstanceStatus, agent: AgentState) -> VirtualMachineInstanceStatus:
    """Put the agent's report into the status; without an agent, remove it.

    Fields that a connected agent has not reported stay as they are: this process may not have queried them yet, and a
    paused guest does not respond.
    """
    new: dict[str, object] = {}
    if agent.os is not None or not agent.is_connected:
        new["guest_os_info"] = _system(agent)
    if agent.interfaces is not None or not agent.is_connected:
        new["interfaces"] = _merged(status.interfaces, _interfaces(agent))
    if agent.is_frozen is not None or not agent.is_connected:
        new["fs_freeze_status"] = FROZEN if agent.is_frozen else ""
    return msgspec.structs.replace(status, **new)


def agent_conditions(status: VirtualMachineInstanceStatus, agent: AgentState) -> tuple[Condition, ...]:
    """Return the conditions of KINDS that are true. A condition whose part of the report is missing stays as it was."""
    if not agent.is_connected:
        return ()
    current = {condition.type: condition for condition in status.conditions if condition.type in KINDS}
    is_cut = agent.interfaces is not None and (
        agent.interfaces.is_cut
        or len(_merged(status.interfaces, agent.interfaces.listed, limit=None)) > len(status.interfaces)
    )
    connected = Condition(type=condition_types.AGENT_CONNECTED, status="True")
    if is_cut:
        message = "the guest has more interfaces or addresses than its status shows"
        connected = msgspec.structs.replace(connected, reason=TRUNCATED, message=message)
    if agent.interfaces is None:
        connected = current.get(condition_types.AGENT_CONNECTED, connected)
    if agent.info is None:
        return (connected, *(current[kind] for kind in KINDS[1:] if kind in current))
    if not agent.info.missing:
        return (connected,)
    unsupported = Condition(
        type=condition_types.AGENT_VERSION_NOT_SUPPORTED,
        status="True",
        reason="MissingCommands",
        message=f"This guest agent doesn't support required basic commands: {', '.join(agent.info.missing)}",
    )
    return (connected, unsupported)


def _system(agent: AgentState) -> GuestOsInfo:
    os = agent.os
    if os is None:
        return GuestOsInfo()
    return GuestOsInfo(
        name=os.name,
        kernel_release=os.kernel_release,
        version=os.version,
        pretty_name=os.pretty_name,
        version_id=os.version_id,
        kernel_version=os.kernel_version,
        machine=os.machine,
        id=os.id,
    )


def _interfaces(agent: AgentState) -> tuple[Interface, ...]:
    return () if agent.interfaces is None else agent.interfaces.listed


def _merged(
    current: tuple[InterfaceStatus, ...], listed: tuple[Interface, ...], limit: int | None = GUEST_ONLY_LIMIT
) -> tuple[InterfaceStatus, ...]:
    """Name the VMI's own interfaces as the guest does, by MAC address; then list those that only the guest has."""
    by_mac = {interface.mac: interface for interface in reversed(listed) if interface.mac}
    own = [interface for interface in map(_without_agent_report, current) if interface is not None]
    matched = {id(by_mac[interface.mac]) for interface in own if interface.mac in by_mac}
    guest_only = [_only_in_guest(interface) for interface in listed if id(interface) not in matched]
    return (*(_with_guest_name(interface, by_mac.get(interface.mac)) for interface in own), *guest_only[:limit])


def _without_agent_report(interface: InterfaceStatus) -> InterfaceStatus | None:
    """Return the interface without the agent's part; None if only the agent knew it."""
    sources = [source for source in interface.info_source.split(", ") if source != _BY_AGENT]
    if not "".join(sources):
        return None
    return msgspec.structs.replace(interface, info_source=", ".join(sources), interface_name="")


def _with_guest_name(interface: InterfaceStatus, reported: Interface | None) -> InterfaceStatus:
    if reported is None:
        return interface
    return msgspec.structs.replace(
        interface, interface_name=reported.name, info_source=f"{interface.info_source}, {_BY_AGENT}"
    )


def _only_in_guest(reported: Interface) -> InterfaceStatus:
    return InterfaceStatus(
        ip_address=reported.addresses[0] if reported.addresses else "",
        ip_addresses=reported.addresses,
        mac=reported.mac,
        interface_name=reported.name,
        info_source=_BY_AGENT,
    )
