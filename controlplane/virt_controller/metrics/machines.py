# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of each machine's state, built from the caches at each scrape. Pure.

Label values are names that the API server validated, our own constants and addresses: none comes from a guest. A
deleted machine has no series, so their number is bounded by the number of machines.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec
from kubevirt_api import printable_statuses
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.api.objects.phase import is_known_phase
from controlplane.api.timestamps import read_timestamp
from controlplane.virt_controller.metrics.interfaces import Networking, add_interfaces, interface_family
from controlplane.virt_controller.metrics.migration_times import InstanceMigration, MigrationState, migration_times

GROUPS: dict[str, frozenset[str]] = {
    "starting": frozenset(
        {printable_statuses.PROVISIONING, printable_statuses.STARTING, printable_statuses.WAITING_FOR_VOLUME_BINDING}
    ),
    "running": frozenset({printable_statuses.RUNNING}),
    "migrating": frozenset({printable_statuses.MIGRATING}),
    "non_running": frozenset(
        {
            printable_statuses.STOPPED,
            printable_statuses.PAUSED,
            printable_statuses.STOPPING,
            printable_statuses.TERMINATING,
        }
    ),
}
"""KubeVirt's groups of printable statuses; every other status is an "error"."""
ERROR = "error"
_STATE_CONDITIONS = frozenset({"Ready", "Failure", "Paused"})
"""Conditions whose last change is the time of a machine's state, as in KubeVirt."""


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str | None = None


class _Condition(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Template(msgspec.Struct):
    spec: Networking = msgspec.field(default_factory=Networking)


class _VmSpec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _VmStatus(msgspec.Struct, rename="camel"):
    printable_status: str = ""
    conditions: list[_Condition] = []


class _Vm(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _VmSpec = msgspec.field(default_factory=_VmSpec)
    status: _VmStatus = msgspec.field(default_factory=_VmStatus)


class _Interface(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    ip_address: str = ""


class _VmiStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    node_name: str = ""
    interfaces: list[_Interface] = []
    conditions: list[_Condition] = []
    migration_state: MigrationState | None = None


class _VmiSpec(Networking, rename="camel"):
    eviction_strategy: str | None = None


class _Vmi(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _VmiSpec = msgspec.field(default_factory=_VmiSpec)
    status: _VmiStatus = msgspec.field(default_factory=_VmiStatus)


Decoded = TypeVar("Decoded")
_VM_DECODER = msgspec.json.Decoder(_Vm)
_VMI_DECODER = msgspec.json.Decoder(_Vmi)


class Machines(Collector):
    """A collector for prometheus_client. Safe to call in another thread."""

    def __init__(
        self,
        vms: Callable[[], Iterable[bytes]],
        vmis: Callable[[], Iterable[bytes]],
        is_leader: Callable[[], bool],
        migrations: Callable[[], Iterable[bytes]] = tuple,
        eviction_strategy: Callable[[], str | None] = lambda: None,
    ) -> None:
        """vms, vmis, migrations: each returns a copy of the cached objects. eviction_strategy: of VMIs without one."""
        self._eviction_strategy = eviction_strategy
        self._vms, self._vmis, self._migrations, self._is_leader = vms, vmis, migrations, is_leader

    def describe(self) -> Iterator[Metric]:
        """Declare nothing: otherwise the registry would read every machine to get the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics on the leader only: other replicas would count each machine again."""
        if self._is_leader():
            yield from vm_metrics(_read(self._vms(), _VM_DECODER))
            migrated: list[InstanceMigration] = []
            yield from vmi_metrics(_read(self._vmis(), _VMI_DECODER), migrated, self._eviction_strategy())
            yield from migration_times(migrated, self._migrations)


def _read(cached: Iterable[bytes], decoder: msgspec.json.Decoder[Decoded]) -> Iterator[Decoded]:
    for raw in cached:
        try:
            yield decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeError):  # the object's controller reports that
            continue


def status_group(printable_status: str) -> str:
    """Return the group of a printable status."""
    return next((group for group, statuses in GROUPS.items() if printable_status in statuses), ERROR)


def vm_metrics(vms: Iterable[_Vm]) -> Iterator[Metric]:
    """Yield the metrics of VMs: state, time of the state, and creation."""
    info = GaugeMetricFamily(
        "kubevirt_vm_info",
        "Information about Virtual Machines.",
        labels=("name", "namespace", "status", "status_group"),
    )
    created = GaugeMetricFamily(
        "kubevirt_vm_create_date_timestamp_seconds",
        "Virtual Machine creation timestamp.",
        labels=("name", "namespace"),
    )
    since = {
        group: GaugeMetricFamily(
            f"kubevirt_vm_{group}_status_last_transition_timestamp_seconds",
            f"Virtual Machine last transition timestamp to {group} status; only of those that are.",
            labels=("name", "namespace"),
        )
        for group in (*GROUPS, ERROR)
    }
    interfaces = interface_family("vm", "Network interfaces that Virtual Machines declare.")
    for vm in vms:
        names = (vm.metadata.name, vm.metadata.namespace)
        group = status_group(vm.status.printable_status)
        info.add_metric((*names, vm.status.printable_status, group), 1)
        if (seconds := read_timestamp(vm.metadata.creation_timestamp)) is not None:
            created.add_metric(names, seconds)
        if (changed := _last_change(vm.status.conditions)) is not None:
            since[group].add_metric(names, changed)
        add_interfaces(interfaces, *names, vm.spec.template.spec)
    yield from (info, created, *since.values(), interfaces)


def vmi_metrics(
    vmis: Iterable[_Vmi], migrated: list[InstanceMigration], default_strategy: str | None
) -> Iterator[Metric]:
    """Yield the metrics of VMIs: phase, node, addresses, evictions. migrated: collects the VMIs with a migration."""
    blocked = GaugeMetricFamily(
        "kubevirt_vmi_non_evictable",
        "Indication for a VirtualMachineInstance whose eviction strategy is LiveMigrate and that cannot be migrated.",
        labels=("node", "namespace", "name"),
    )
    info = GaugeMetricFamily(
        "kubevirt_vmi_info",
        "Information about VirtualMachineInstances.",
        labels=("node", "namespace", "name", "phase"),
    )
    addresses = GaugeMetricFamily(
        "kubevirt_vmi_status_addresses",
        "The first address of each network interface of a VirtualMachineInstance.",
        labels=("node", "namespace", "name", "vnic_name", "address", "type"),
    )
    interfaces = interface_family("vmi", "Network interfaces of VirtualMachineInstances.")
    for vmi in vmis:
        instance, status = (vmi.status.node_name, vmi.metadata.namespace, vmi.metadata.name), vmi.status
        add_interfaces(interfaces, vmi.metadata.name, vmi.metadata.namespace, vmi.spec)
        blocked.add_metric(instance, float(_is_blocked(vmi, default_strategy)))
        info.add_metric((*instance, status.phase.lower() if is_known_phase(status.phase) else "unknown"), 1)
        address_by_name = {
            interface.name: interface.ip_address
            for interface in status.interfaces
            if interface.name and _is_address(interface.ip_address)
        }
        for name, address in address_by_name.items():
            addresses.add_metric((*instance, name, address, "ExternalInterface"), 1)
        if status.migration_state is not None:
            migrated.append(InstanceMigration(instance, status.migration_state))
    yield from (info, addresses, blocked, interfaces)


def _is_blocked(vmi: _Vmi, default_strategy: str | None) -> bool:
    """Tell whether no eviction of the VMI can succeed. As upstream, an unknown condition counts as not migratable."""
    is_migratable = any(
        condition.type == "LiveMigratable" and condition.status == "True" for condition in vmi.status.conditions
    )
    return (vmi.spec.eviction_strategy or default_strategy) == "LiveMigrate" and not is_migratable


def _last_change(conditions: Iterable[_Condition]) -> float | None:
    stamps = (
        read_timestamp(condition.last_transition_time)
        for condition in conditions
        if condition.type in _STATE_CONDITIONS
    )
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # a zone is free text
