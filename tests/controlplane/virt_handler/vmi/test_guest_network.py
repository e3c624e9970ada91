# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's MAC address and CIDR come from the launch plan. Without one they are derived as in older versions."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.launch_plan import NETWORK_ANNOTATION, GuestNetwork, render_network
from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.devices import Interface
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.mac import guest_mac
from controlplane.virt_handler.vmi.guest_network import interface_mac, network_cidr
from tests.controlplane.virt_handler.builders import VMI_UID, a_vmi, pod_object

PLANNED = GuestNetwork("default", "02:aa:bb:cc:dd:ee", "10.9.0.0/28")


def a_pod_with(text: str | None) -> Pod:
    body = pod_object()
    body["metadata"]["annotations"] = {} if text is None else {NETWORK_ANNOTATION: text}
    return decode(body, Pod)


def a_machine(**interface: Any) -> tuple[VirtualMachineInstance, Interface]:
    nic = {"name": "default", "masquerade": {}, **interface}
    vmi = a_vmi(domain={"memory": {"guest": "64Mi"}, "devices": {"interfaces": [nic]}})
    return vmi, vmi.spec.domain.devices.interfaces[0]


def test_the_launch_plan_sets_mac_and_cidr() -> None:
    vmi, nic = a_machine()
    pod = a_pod_with(render_network(PLANNED))
    assert (interface_mac(vmi, pod, nic), network_cidr(vmi, pod, nic)) == (PLANNED.mac, PLANNED.cidr)


OTHER_INTERFACE = render_network(GuestNetwork("other", PLANNED.mac, PLANNED.cidr))


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"mac": 1}', "[" * 100_000, OTHER_INTERFACE])
def test_without_a_launch_plan_both_are_derived_as_before(text: str | None) -> None:
    vmi, nic = a_machine()
    pod = a_pod_with(text)
    assert interface_mac(vmi, pod, nic) == guest_mac(VMI_UID, "default")
    assert network_cidr(vmi, pod, nic) == "10.0.2.0/24"


@pytest.mark.parametrize("mac", ["", "x", "03:00:00:00:00:01", "02-00-00-00-00-01", "02:00:00:00:00:0A"])
def test_an_invalid_planned_mac_is_ignored(mac: str) -> None:
    vmi, nic = a_machine(macAddress="02:00:00:00:00:99")
    pod = a_pod_with(render_network(GuestNetwork("default", mac, PLANNED.cidr)))
    assert interface_mac(vmi, pod, nic) == "02:00:00:00:00:99"


def test_an_impossible_cidr_is_refused() -> None:
    vmi, nic = a_machine()
    with pytest.raises(ValueError, match="cannot be a guest's"):
        network_cidr(vmi, a_pod_with(render_network(GuestNetwork("default", PLANNED.mac, "127.0.0.0/24"))), nic)
