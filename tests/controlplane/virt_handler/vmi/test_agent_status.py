# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a VMI's status that comes from its guest agent."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from controlplane.api.objects import conditions
from controlplane.api.objects.vmi.instance import InterfaceStatus, VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.api.objects.vmi.status import GuestOsInfo
from controlplane.domain.agent import REQUIRED, AgentState, Info, Interface, Interfaces, OsInfo
from controlplane.virt_handler.vmi.status import derive_status
from tests.controlplane.virt_handler.builders import OFF, RUNNING, a_launcher, a_vmi, a_world, seen

MAC = "02:00:00:00:00:99"
ETH0 = Interface("enp1s0", MAC, ("10.0.2.2", "fe80::1"))
DOCKER = Interface("docker0", "02:42:00:00:00:01", ("172.17.0.1",))
SYSTEM = OsInfo(name="Debian GNU/Linux", kernel_release="6.12", id="debian")
REPORTED = AgentState(is_connected=True, info=Info("9.2.0", ()), os=SYSTEM, interfaces=Interfaces((ETH0, DOCKER)))
GONE = AgentState()


def running(status: VirtualMachineInstanceStatus) -> VirtualMachineInstance:
    return msgspec.structs.replace(a_vmi("Running"), status=status)


def derived(agent: AgentState | None, before: VirtualMachineInstanceStatus) -> VirtualMachineInstanceStatus | None:
    return derive_status(a_world(running(before), a_launcher(seen(agent=agent))), None)


def must(status: VirtualMachineInstanceStatus | None) -> VirtualMachineInstanceStatus:
    assert status is not None
    return status


@pytest.fixture
def started() -> VirtualMachineInstanceStatus:
    """Return the status of a guest that has just started, before its agent connects."""
    return must(derive_status(a_world(a_vmi("Scheduled"), a_launcher(seen(agent=GONE))), None))


def types(status: VirtualMachineInstanceStatus) -> set[str]:
    return {condition.type for condition in status.conditions if condition.type.startswith("Agent")}


def test_agent_answers_are_in_the_status_and_not_written_twice(started: VirtualMachineInstanceStatus) -> None:
    status = must(derived(REPORTED, started))
    assert types(status) == {"AgentConnected"}
    assert status.guest_os_info == GuestOsInfo(name="Debian GNU/Linux", kernel_release="6.12", id="debian")
    (own,) = started.interfaces
    assert status.interfaces == (
        InterfaceStatus(
            name="default",
            ip_address="10.244.0.7",
            ip_addresses=("10.244.0.7", "fd00::7"),
            mac=MAC,
            interface_name="enp1s0",
            pod_interface_name=own.pod_interface_name,
            info_source="domain, guest-agent",
            queue_count=1,
            link_state="up",
        ),
        InterfaceStatus(
            ip_address="172.17.0.1",
            ip_addresses=("172.17.0.1",),
            mac="02:42:00:00:00:01",
            interface_name="docker0",
            info_source="guest-agent",
        ),
    )
    assert derived(REPORTED, status) is None


def test_a_disconnected_agent_takes_its_answers_along(started: VirtualMachineInstanceStatus) -> None:
    status = must(derived(replace(REPORTED, is_frozen=True), started))
    assert status.fs_freeze_status == "frozen"
    assert must(derived(GONE, status)) == started


def test_without_a_known_agent_state_the_status_stays(started: VirtualMachineInstanceStatus) -> None:
    """virt-handler restarted: it does not know the agent yet."""
    assert derived(None, must(derived(REPORTED, started))) is None


def test_a_finished_run_has_no_agent(started: VirtualMachineInstanceStatus) -> None:
    status = must(derived(REPORTED, started))
    over = must(derive_status(a_world(running(status), a_launcher(seen(OFF, agent=None))), None))
    assert over.phase == "Succeeded"
    assert types(over) == set()


def test_an_agent_without_required_commands_is_not_supported(started: VirtualMachineInstanceStatus) -> None:
    old = replace(REPORTED, info=Info("1.0", tuple(sorted(REQUIRED - {"guest-ping"}))))
    status = must(derived(old, started))
    assert types(status) == {"AgentConnected", "AgentVersionNotSupported"}
    condition = conditions.find(status.conditions, "AgentVersionNotSupported")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "MissingCommands")
    assert "guest-get-fsinfo" in condition.message
    assert types(must(derived(REPORTED, status))) == {"AgentConnected"}


@pytest.mark.parametrize(
    ("interfaces", "only", "reason"),
    [
        (Interfaces((ETH0, *[replace(DOCKER, name=f"v{number}") for number in range(10)])), 10, ""),
        (Interfaces((ETH0, *[replace(DOCKER, name=f"v{number}") for number in range(11)])), 10, "GuestInfoTruncated"),
        (Interfaces((ETH0,), is_cut=True), 0, "GuestInfoTruncated"),
    ],
    ids=["ten", "eleven", "cut before"],
)
def test_only_ten_interfaces_of_the_guests_own_are_kept_and_the_cut_is_reported(
    started: VirtualMachineInstanceStatus, interfaces: Interfaces, only: int, reason: str
) -> None:
    status = must(derived(replace(REPORTED, interfaces=interfaces), started))
    assert len(status.interfaces) == 1 + only
    condition = conditions.find(status.conditions, "AgentConnected")
    assert condition is not None
    assert condition.reason == reason
    assert derived(replace(REPORTED, interfaces=interfaces), status) is None


def test_of_two_interfaces_with_the_same_mac_the_first_is_the_vmis(started: VirtualMachineInstanceStatus) -> None:
    """A bridge in the guest has the MAC address of its port."""
    bridge = replace(ETH0, name="br0")
    status = must(derived(replace(REPORTED, interfaces=Interfaces((ETH0, bridge))), started))
    assert [(interface.name, interface.interface_name) for interface in status.interfaces] == [
        ("default", "enp1s0"),
        ("", "br0"),
    ]


def test_without_a_connection_the_answers_stay(started: VirtualMachineInstanceStatus) -> None:
    status = must(derived(REPORTED, started))
    lost = a_launcher(seen(RUNNING, agent=GONE, is_connected=False))
    assert derive_status(a_world(running(status), lost), None) is None


def test_agent_answers_stay_until_the_agent_gives_others(started: VirtualMachineInstanceStatus) -> None:
    """A restarted virt-handler has no answers yet, and a paused guest does not answer."""
    lacking = replace(REPORTED, info=Info("1.0", ("guest-exec",)), is_frozen=True)
    before = must(derived(lacking, started))

    assert derived(AgentState(is_connected=True), before) is None
