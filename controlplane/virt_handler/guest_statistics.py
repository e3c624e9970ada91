# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of each running guest, from libvirt's counters. They are read when the page of metrics is rendered.

Devices that the VMI's domain does not have are left out: the launcher may be a tenant's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.api.objects.decode import readable_vmi
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.domain import Cpu
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.disk import device_names
from controlplane.domain.builders.facts import NotBuildableError
from controlplane.domain.layout import TAP
from controlplane.domain.statistics import Device, Statistics
from controlplane.engine.ports import Cache

Read = Callable[[], Awaitable[Mapping[Key, Statistics]]]
Guest = tuple[str, ...]
"""The values of _LABELS."""
_LABELS = ("node", "namespace", "name")
_SECONDS, _KIB = 1e-9, 1024
"""libvirt counts in nanoseconds and KiB."""


class Row(NamedTuple):
    """One metric."""

    field: str
    """libvirt's name, below the device's if it has one."""
    name: str
    """KubeVirt's name, without its prefix, and without the suffix of a counter."""
    text: str
    factor: float = 1
    is_counter: bool = True


GUEST = (
    Row("cpu.time", "cpu_usage_seconds", "Total CPU time spent in all modes.", _SECONDS),
    Row("cpu.user", "cpu_user_usage_seconds", "Total CPU time spent in user mode.", _SECONDS),
    Row("cpu.system", "cpu_system_usage_seconds", "Total CPU time spent in system mode.", _SECONDS),
    Row("balloon.major_fault", "memory_pgmajfault", "The number of page faults when disk IO was required."),
    Row("balloon.minor_fault", "memory_pgminfault", "The number of other page faults."),
    *(
        Row(f"balloon.{field}", f"memory_{name}_bytes", text, _KIB, is_counter=False)
        for field, name, text in (
            ("rss", "resident", "Resident set size of the process running the domain."),
            ("available", "available", "Amount of usable memory as seen by the domain."),
            ("unused", "unused", "The amount of memory left completely unused by the system."),
            ("usable", "usable", "The amount of memory which can be reclaimed without swapping."),
            ("disk_caches", "cached", "The amount of memory that is being used to cache I/O."),
            ("swap_in", "swap_in_traffic", "The total amount of data read from swap space of the guest in bytes."),
            ("swap_out", "swap_out_traffic", "The total amount of memory written out to swap space of the guest."),
            ("current", "actual_balloon", "Current balloon size in bytes."),
            ("maximum", "domain", "The amount of memory in bytes allocated to the domain."),
        )
    ),
)
VCPU = (
    Row("time", "vcpu_seconds", "Total amount of time spent by each vcpu.", _SECONDS),
    Row("wait", "vcpu_wait_seconds", "Amount of time spent by each vcpu while waiting on I/O.", _SECONDS),
    Row("delay", "vcpu_delay_seconds", "Amount of time spent by each vcpu waiting in the queue.", _SECONDS),
)
NETWORK = tuple(
    Row(f"{way}.{field}", f"network_{verb}_{name}", text)
    for way, verb in (("rx", "receive"), ("tx", "transmit"))
    for field, name, text in (
        ("bytes", "bytes", f"Total network traffic to {verb} in bytes."),
        ("pkts", "packets", f"Total network traffic to {verb} in packets."),
        ("errs", "errors", f"Total number of errors to {verb} packets."),
        ("drop", "packets_dropped", f"Total number of dropped packets to {verb}."),
    )
)
STORAGE = (
    Row("rd.reqs", "storage_iops_read", "Total number of I/O read operations."),
    Row("wr.reqs", "storage_iops_write", "Total number of I/O write operations."),
    Row("rd.bytes", "storage_read_traffic_bytes", "Total number of bytes read from storage."),
    Row("wr.bytes", "storage_write_traffic_bytes", "Total number of written bytes."),
    Row("rd.times", "storage_read_times_seconds", "Total time spent on read operations.", _SECONDS),
    Row("wr.times", "storage_write_times_seconds", "Total time spent on write operations.", _SECONDS),
    Row("fl.reqs", "storage_flush_requests", "Total storage flush requests."),
    Row("fl.times", "storage_flush_times_seconds", "Total time spent on cache flushing.", _SECONDS),
)


class GuestStatistics(Collector):
    """A collector for prometheus_client. `refresh` runs in the event loop, `collect` in another thread."""

    def __init__(self, node: str, read: Read, *vmis: Cache) -> None:
        """read: returns the counters of the guests that are up. vmis: those of this node."""
        self._node, self._read, self._vmis = node, read, vmis
        self._guests: Mapping[Guest, Statistics] = {}

    async def refresh(self) -> None:
        """Read the counters."""
        self._guests = {
            (self._node, key.namespace, key.name): of_own_devices(statistics, self._vmi(key))
            for key, statistics in (await self._read()).items()
        }

    def _vmi(self, key: Key) -> VirtualMachineInstance | None:
        return readable_vmi(next((raw for vmis in self._vmis if (raw := vmis.get(key)) is not None), None))

    def describe(self) -> Iterator[Metric]:
        """Declare nothing: there are no counters yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        guests = self._guests
        for row in GUEST:
            family = _family(row)
            for guest, statistics in guests.items():
                _add(family, guest, statistics.guest, row)
            yield family
        vcpus = [(guest, vcpu) for guest, statistics in guests.items() for vcpu in statistics.vcpus]
        interfaces = [(guest, interface) for guest, statistics in guests.items() for interface in statistics.interfaces]
        disks = [(guest, disk) for guest, statistics in guests.items() for disk in statistics.disks]
        yield from _of_devices(VCPU[:1], vcpus, ("id", "state"))
        yield from _of_devices(VCPU[1:], vcpus, ("id",))
        yield from _of_devices(NETWORK, interfaces, ("interface",))
        yield from _of_devices(STORAGE, disks, ("drive",))


def of_own_devices(statistics: Statistics, vmi: VirtualMachineInstance | None) -> Statistics:
    """Keep only devices of the domain that is built for this VMI: others are made up. None: no device is known."""
    if vmi is None:
        return Statistics(statistics.guest)
    try:
        disks = set(device_names(vmi).values())
    except NotBuildableError:
        disks = set()
    interfaces = {TAP} if vmi.spec.domain.devices.interfaces else set()
    return replace(
        statistics,
        vcpus=statistics.vcpus[: (vmi.spec.domain.cpu or Cpu()).most_vcpus],
        interfaces=tuple(device for device in statistics.interfaces if device.name in interfaces),
        disks=tuple(device for device in statistics.disks if device.name in disks),
    )


def _of_devices(
    rows: tuple[Row, ...], devices: Sequence[tuple[Guest, Device]], labels: tuple[str, ...]
) -> Iterator[Metric]:
    """Yield the metrics of a kind of device."""
    for row in rows:
        family = _family(row, labels)
        for guest, device in devices:
            _add(family, (*guest, *(device.name, device.state)[: len(labels)]), device.counters, row)
        yield family


def _family(row: Row, labels: tuple[str, ...] = ()) -> CounterMetricFamily | GaugeMetricFamily:
    make = CounterMetricFamily if row.is_counter else GaugeMetricFamily
    return make(f"kubevirt_vmi_{row.name}", row.text, labels=(*_LABELS, *labels))


def _add(
    family: CounterMetricFamily | GaugeMetricFamily, labels: tuple[str, ...], counters: Mapping[str, int], row: Row
) -> None:
    if (value := counters.get(row.field)) is not None:
        family.add_metric(labels, value * row.factor)
