# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about interfaces and networks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.storage import duplicates
from controlplane.api.objects.vmi.devices import Interface
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.volumes import Network
from controlplane.guest_network import is_usable

RESERVED_MAC = "02:00:00:00:00:00"
"""The bridge's address in every launcher Pod."""


def check_network(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check interfaces and networks, and that they match by name."""
    interfaces, interface_path = spec.domain.devices.interfaces, below(path, "domain.devices.interfaces")
    network_path = below(path, "networks")
    yield from duplicates((entry.name for entry in interfaces), interface_path)
    yield from duplicates((entry.name for entry in spec.networks), network_path)
    yield from _pairs(spec, interface_path, network_path)
    for index, interface in enumerate(interfaces):
        yield from _interface(interface, below(interface_path, index))
    pods = [index for index, network in enumerate(spec.networks) if network.pod is not None]
    for index in pods[1:]:
        text = f"{network_path}[{pods[0]}] is a pod network already; a machine has at most one, remove one"
        yield Problem(below(below(network_path, index), "pod"), text)
    for index, network in enumerate(spec.networks):
        yield from _network(network, below(network_path, index))


def _pairs(spec: VirtualMachineInstanceSpec, interface_path: str, network_path: str) -> Iterator[Problem]:
    networks = {entry.name for entry in spec.networks}
    interfaces = {entry.name for entry in spec.domain.devices.interfaces}
    for index, interface in enumerate(spec.domain.devices.interfaces):
        if interface.name not in networks:
            text = f"no network is called {excerpt(interface.name)}; add it to spec.networks or remove the interface"
            yield Problem(below(below(interface_path, index), "name"), text)
    for index, network in enumerate(spec.networks):
        if network.name not in interfaces:
            text = (
                f"no interface is called {excerpt(network.name)}; "
                "add it to spec.domain.devices.interfaces or remove the network"
            )
            yield Problem(below(below(network_path, index), "name"), text)


def _interface(interface: Interface, path: str) -> Iterator[Problem]:
    if interface.masquerade is None:
        yield Problem(path, "has no binding; set masquerade: {}", "FieldValueRequired")
    elif interface.masquerade:
        yield Problem(below(path, "masquerade"), "takes no settings; write masquerade: {}")
    yield from _mac(interface.mac_address, below(path, "macAddress"))
    names: dict[str, int] = {}
    ports: dict[tuple[str, int], int] = {}
    for index, port in enumerate(interface.ports):
        here = below(below(path, "ports"), index)
        if port.name and port.name in names:
            text = f"{excerpt(port.name)} is already the name of ports[{names[port.name]}]; names must be unique"
            yield Problem(below(here, "name"), text, "FieldValueDuplicate")
        key = (port.protocol or "TCP", port.port)
        if key in ports:
            text = f"{key[0]} {key[1]} is already listed in ports[{ports[key]}]; remove one"
            yield Problem(here, text, "FieldValueDuplicate")
        names.setdefault(port.name, index)
        ports.setdefault(key, index)


def _mac(address: str, path: str) -> Iterator[Problem]:
    spelled = address.lower().replace("-", ":")
    octets = spelled.split(":")
    if len(octets) != 6 or not all(len(octet) == 2 and set(octet) <= set("0123456789abcdef") for octet in octets):
        return  # empty, or fields.py reports it
    if int(octets[0], 16) & 1:
        text = f"{excerpt(address)} is a group address; use a unicast one, e.g. 02:12:34:56:78:9a"
        yield Problem(path, text)
    elif spelled in (RESERVED_MAC, "00:00:00:00:00:00"):
        text = f"{excerpt(address)} is reserved; use another unicast address, e.g. 02:12:34:56:78:9a"
        yield Problem(path, text)


def _network(network: Network, path: str) -> Iterator[Problem]:
    if network.pod is None:
        yield Problem(path, "has no source; set pod: {}", "FieldValueRequired")
        return
    cidr = network.pod.vm_network_cidr
    if not cidr:
        return
    where = below(path, "pod.vmNetworkCIDR")
    try:
        parsed = ipaddress.IPv4Network(cidr, strict=False)
    except ValueError:
        yield Problem(where, f"{excerpt(cidr)} is not an IPv4 network; write e.g. 10.0.2.0/24")
        return
    if not is_usable(parsed):
        text = f"{excerpt(cidr)} cannot be used; write a unicast network from /8 to /30, e.g. 10.0.2.0/24"
        yield Problem(where, text)
