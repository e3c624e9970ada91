# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Channels out of a guest, their readers, and how much of their data a status can contain.

What a launcher sends over libvirt's protocol, and how fast: hypervisor/test_hostile.py.
"""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from libvirt_domain.codec import render_text

from controlplane.api.admission.fields import check
from controlplane.api.admission.problem import Problem
from controlplane.api.objects import conditions
from controlplane.api.objects.vmi.status import InterfaceStatus
from controlplane.api.registry import KINDS
from controlplane.domain import agent
from controlplane.domain.agent import AgentState
from controlplane.domain.observed import read_domain
from controlplane.links.node.messages import ADDRESSES_LIMIT, PodInterface
from controlplane.virt_handler.vmi.agent_status import GUEST_ONLY_LIMIT
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import Failure
from tests.controlplane.api.schema.test_crds import schema_of
from tests.controlplane.domain.golden_domains import CASES
from tests.controlplane.test_advisories import VOLUMES, refused
from tests.controlplane.virt_handler.builders import a_launcher, a_vmi, a_world, domain_text, seen

DEVICES = "spec/template/spec/domain/devices"
STATUS_BYTES = 8 * 1024
GUESTS_BYTES = 24 * 1024
"""The size of a status with everything that a guest's agent can put into it."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_agent_channel_is_the_only_channel_of_a_guest(case: Any) -> None:
    """libvirt in the launcher keeps it open. Without other channels, a guest cannot block or fill any reader."""
    devices = ElementTree.fromstring(render_text(case.build())).find("devices")
    assert devices is not None

    names = [target.get("name") for target in devices.iterfind("channel/target")]
    assert names == ["org.qemu.guest_agent.0"]
    assert not [
        device.tag for device in devices if device.tag in ("vsock", "redirdev", "shmem", "filesystem", "hostdev")
    ]


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (f"{DEVICES}/downwardMetrics", {}, "devices.downwardMetrics"),
        (VOLUMES, [{"name": "root", "downwardMetrics": {}}], "volumes[0].downwardMetrics"),
        (f"{DEVICES}/autoattachVSOCK", True, "devices.autoattachVSOCK"),
    ],
    ids=["a channel for metrics", "a disk of metrics", "vsock"],
)
def test_another_channel_is_refused_by_name(path: str, value: Any, named: str) -> None:
    assert f"{named}: " in refused(path, value)


def test_the_part_of_a_status_that_a_launcher_controls_is_bounded() -> None:
    """A VMI that exceeds the size limit of the API server cannot be written by anybody."""
    flood = "\u2622 <no>\n" * 100_000
    xml = domain_text().replace("<features>", f"<os><type machine='{'q' * 10_000}'>hvm</type></os><features>")
    addresses = tuple("fd00:1111:2222:3333:4444:5555:6666:7777" for _unused in range(ADDRESSES_LIMIT))
    observed = seen(
        observed=read_domain(xml),
        interface=PodInterface(addresses, 1450),
        trouble=flood,
        failure=Failure(flood, flood),
    )
    vmi = a_vmi("Scheduled")

    status = derive_status(a_world(vmi, a_launcher(observed)), None)

    assert status is not None
    assert status.phase == "Running"
    assert len(msgspec.json.encode(status)) < STATUS_BYTES
    assert refusals(status.interfaces) == []
    assert [interface.name for interface in status.interfaces] == ["default"], (
        "the machine's own, whatever its guest has made"
    )
    failed = derive_status(a_world(vmi, a_launcher(seen(None, trouble=flood, failure=Failure(flood, flood)))), None)
    assert failed is not None
    assert failed.phase == "Failed"
    assert len(msgspec.json.encode(failed)) < STATUS_BYTES


def test_a_machine_with_most_interfaces_and_a_guest_with_more_fit_into_a_status() -> None:
    """The limit on what is written and the limit of the schema are separate."""
    own = schema_of(next(kind for kind in KINDS if kind.resource.kind == "VirtualMachineInstance"))["properties"]
    most = own["spec"]["properties"]["domain"]["properties"]["devices"]["properties"]["interfaces"]["maxItems"]
    written = own["status"]["properties"]["interfaces"]

    assert written["maxItems"] == most + GUEST_ONLY_LIMIT
    assert written["items"]["properties"]["ipAddresses"]["maxItems"] == agent.ADDRESSES_LIMIT


@pytest.mark.parametrize("address", ["10.244.0.37/24", "fe80::5054:ff:fe12:3456%eth0", "::ffff:255.255.255.255"])
def test_the_interface_status_that_upstream_writes_is_accepted(address: str) -> None:
    interface = InterfaceStatus(
        name="default",
        ip_address=address,
        ip_addresses=(address,),
        mac="52:54:00:12:34:56",
        interface_name="Ethernet-Instanz \u00dc 0 2",
        pod_interface_name="pod37a8eec1ce1",
        info_source="domain, guest-agent, multus-status",
        link_state="down",
    )
    assert refusals((interface,)) == []


def refusals(interfaces: tuple[InterfaceStatus, ...]) -> list[Problem]:
    """Return the schema errors for interfaces in a status."""
    return [
        problem
        for interface in interfaces
        for problem in check(msgspec.json.decode(msgspec.json.encode(interface)), InterfaceStatus)
    ]


def test_the_part_of_a_status_that_a_guest_controls_is_bounded() -> None:
    """The status says that data was cut. The worst case are characters that JSON escapes into many bytes."""
    text = '\u20ac\\"' * 10_000
    addresses = [{"ip-address": f"fd00:1111:2222:3333:4444:5555:6666:{number:x}"} for number in range(100)]
    interfaces = [{"name": text, "hardware-address": text, "ip-addresses": addresses} for _unused in range(300)]
    fields = ("name", "version", "pretty-name", "version-id", "kernel-release", "kernel-version", "machine", "id")
    observed = AgentState(
        is_connected=True,
        info=agent.read_info(json.dumps({"return": {"version": text, "supported_commands": interfaces}})),
        os=agent.read_os(json.dumps({"return": dict.fromkeys(fields, text)})),
        interfaces=agent.read_interfaces(json.dumps({"return": interfaces})),
    )

    status = derive_status(a_world(a_vmi("Scheduled"), a_launcher(seen(agent=observed))), None)

    assert status is not None
    assert len(msgspec.json.encode(status)) < GUESTS_BYTES
    assert refusals(status.interfaces) == []
    assert len(status.interfaces) == 11
    connected = conditions.find(status.conditions, "AgentConnected")
    assert connected is not None
    assert connected.reason == "GuestInfoTruncated"
