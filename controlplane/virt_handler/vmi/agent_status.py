# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a guest by its agent's word: conditions, operating system, interfaces. Pure.

It informs people; nothing is decided by it. The Pod's addresses stay those of the machine's own interfaces: that is
where a masqueraded guest is reached, whatever it calls itself. All there can be of it is bounded, here in number and by
domain/agent.py in length, and the condition says when something was left out.
"""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.vmi.instance import InterfaceStatus, VirtualMachineInstanceStatus
from controlplane.api.objects.vmi.status import GuestOsInfo
from controlplane.domain.agent import AgentState, Interface

GUEST_ONLY_LIMIT = 10
"""Interfaces that only the guest knows (a container's, a bridge), as upstream."""
FROZEN = "frozen"
TRUNCATED = "GuestInfoTruncated"
_BY_AGENT = "guest-agent"
KINDS = (condition_types.AGENT_CONNECTED, condition_types.AGENT_VERSION_NOT_SUPPORTED)


def with_guests_word(status: VirtualMachineInstanceStatus, told: AgentState) -> VirtualMachineInstanceStatus:
    """Say what the agent has told; one that is gone has told nothing.

    Of one that is there, what it has not told stays as it is: this process may not have asked yet, and a guest that is
    paused does not answer.
    """
    new: dict[str, object] = {}
    if told.os is not None or not told.is_connected:
        new["guest_os_info"] = _system(told)
    if told.interfaces is not None or not told.is_connected:
        new["interfaces"] = _merged(status.interfaces, _interfaces(told))
    if told.is_frozen is not None or not told.is_connected:
        new["fs_freeze_status"] = FROZEN if told.is_frozen else ""
    return msgspec.structs.replace(status, **new)


def agent_conditions(status: VirtualMachineInstanceStatus, told: AgentState) -> tuple[Condition, ...]:
    """Return those of KINDS that are true; the others are absent. What has not been told is as it was."""
    if not told.is_connected:
        return ()
    was = {one.type: one for one in status.conditions if one.type in KINDS}
    is_cut = told.interfaces is not None and (
        told.interfaces.is_cut
        or len(_merged(status.interfaces, told.interfaces.listed, limit=None)) > len(status.interfaces)
    )
    connected = Condition(type=condition_types.AGENT_CONNECTED, status="True")
    if is_cut:
        said = "the guest has more interfaces or addresses than its status shows"
        connected = msgspec.structs.replace(connected, reason=TRUNCATED, message=said)
    if told.interfaces is None:
        connected = was.get(condition_types.AGENT_CONNECTED, connected)
    if told.info is None:
        return (connected, *(was[kind] for kind in KINDS[1:] if kind in was))
    if not told.info.missing:
        return (connected,)
    lacking = Condition(
        type=condition_types.AGENT_VERSION_NOT_SUPPORTED,
        status="True",
        reason="MissingCommands",
        message=f"This guest agent doesn't support required basic commands: {', '.join(told.info.missing)}",
    )
    return (connected, lacking)


def _system(told: AgentState) -> GuestOsInfo:
    said = told.os
    if said is None:
        return GuestOsInfo()
    return GuestOsInfo(
        name=said.name,
        kernel_release=said.kernel_release,
        version=said.version,
        pretty_name=said.pretty_name,
        version_id=said.version_id,
        kernel_version=said.kernel_version,
        machine=said.machine,
        id=said.id,
    )


def _interfaces(told: AgentState) -> tuple[Interface, ...]:
    return () if told.interfaces is None else told.interfaces.listed


def _merged(
    known: tuple[InterfaceStatus, ...], listed: tuple[Interface, ...], limit: int | None = GUEST_ONLY_LIMIT
) -> tuple[InterfaceStatus, ...]:
    """Put the guest's names to the machine's own interfaces, by address; then list what only the guest has."""
    by_mac = {one.mac: one for one in reversed(listed) if one.mac}
    own = [one for one in map(_without_guests_word, known) if one is not None]
    matched = {id(by_mac[one.mac]) for one in own if one.mac in by_mac}
    only = [_only_in_guest(one) for one in listed if id(one) not in matched]
    return (*(_named(one, by_mac.get(one.mac)) for one in own), *only[:limit])


def _without_guests_word(one: InterfaceStatus) -> InterfaceStatus | None:
    """Return what is known without the agent; None for an interface that only it knew."""
    sources = [word for word in one.info_source.split(", ") if word != _BY_AGENT]
    if not "".join(sources):
        return None
    return msgspec.structs.replace(one, info_source=", ".join(sources), interface_name="")


def _named(one: InterfaceStatus, told: Interface | None) -> InterfaceStatus:
    if told is None:
        return one
    return msgspec.structs.replace(one, interface_name=told.name, info_source=f"{one.info_source}, {_BY_AGENT}")


def _only_in_guest(told: Interface) -> InterfaceStatus:
    return InterfaceStatus(
        ip_address=told.addresses[0] if told.addresses else "",
        ip_addresses=told.addresses,
        mac=told.mac,
        interface_name=told.name,
        info_source=_BY_AGENT,
    )
