# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of declared network interfaces. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from prometheus_client.core import GaugeMetricFamily

NO_MODEL = "<none>"
"""As in KubeVirt, where a machine names none."""
_LABELS = ("name", "namespace", "vnic_name", "binding_type", "network", "binding_name", "model")


class _Interface(msgspec.Struct, gc=False):
    name: str = ""
    model: str = ""
    masquerade: Any = None
    bridge: Any = None


class _Multus(msgspec.Struct, rename="camel", gc=False):
    network_name: str = ""


class _Network(msgspec.Struct, gc=False):
    name: str = ""
    multus: _Multus | None = None


class _Devices(msgspec.Struct):
    interfaces: list[_Interface] | None = None


class _Domain(msgspec.Struct):
    devices: _Devices = msgspec.field(default_factory=_Devices)


class Networking(msgspec.Struct):
    """The fields of an instance's spec that the metrics need."""

    domain: _Domain = msgspec.field(default_factory=_Domain)
    networks: list[_Network] | None = None


def interface_family(kind: str, text: str) -> GaugeMetricFamily:
    """Return the family without samples. kind: vm or vmi."""
    return GaugeMetricFamily(f"kubevirt_{kind}_vnic_info", text, labels=_LABELS)


def add_interfaces(family: GaugeMetricFamily, name: str, namespace: str, spec: Networking) -> None:
    """Add a sample for each interface of a machine that has a network."""
    networks = {network.name: network for network in spec.networks or ()}
    for interface in spec.domain.devices.interfaces or ():
        if (network := networks.get(interface.name)) is not None:
            binding = _binding(interface)
            labels = (interface.name, "core" if binding else "", _network_name(network), binding)
            family.add_metric((name, namespace, *labels, interface.model or NO_MODEL), 1)


def _binding(interface: _Interface) -> str:
    if interface.masquerade is not None:
        return "masquerade"
    return "bridge" if interface.bridge is not None else ""


def _network_name(network: _Network) -> str:
    return network.multus.network_name if network.multus is not None else "pod networking"
