# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of each running guest, from libvirt's counters. They are read when the page of metrics is rendered.

The counters are untrusted: what is no number, or has no plain name, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.api.objects.resources import Key

Counters = Mapping[str, object]
Read = Callable[[], Awaitable[Mapping[Key, Counters]]]
MOST_DEVICES = 64
"""Of each kind and guest: libvirt's response could have any number."""
_LABELS = ("node", "namespace", "name")
_DEVICE = re.compile(r"[a-zA-Z0-9._-]{1,64}", re.ASCII)
_SECONDS, _KIB = 1e-9, 1024
"""libvirt counts in nanoseconds and KiB."""
_STATES = {0: "offline", 1: "running", 2: "blocked"}
"""Of virtual CPUs, by libvirt's number."""


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

    def __init__(self, node: str, read: Read) -> None:
        """read: returns the counters of the guests that are up."""
        self._node, self._read = node, read
        self._guests: Mapping[Key, Counters] = {}

    async def refresh(self) -> None:
        """Read the counters."""
        self._guests = await self._read()

    def describe(self) -> Iterator[Metric]:
        """Declare nothing: there are no counters yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        guests: dict[tuple[str, ...], Counters] = {
            (self._node, key.namespace, key.name): counters for key, counters in self._guests.items()
        }
        for row in GUEST:
            family = _family(row)
            for guest, counters in guests.items():
                _add(family, guest, counters.get(row.field), row)
            yield family
        yield from _of_devices(VCPU[:1], guests, ("id", "state"), _vcpus_with_states)
        yield from _of_devices(VCPU[1:], guests, ("id",), _vcpus)
        yield from _of_devices(NETWORK, guests, ("interface",), lambda counters: _named(counters, "net"))
        yield from _of_devices(STORAGE, guests, ("drive",), lambda counters: _named(counters, "block"))


def _of_devices(
    rows: tuple[Row, ...],
    guests: Mapping[tuple[str, ...], Counters],
    labels: tuple[str, ...],
    devices: Callable[[Counters], Iterator[tuple[str, tuple[str, ...]]]],
) -> Iterator[Metric]:
    """Yield the metrics of a kind of device. devices: yields the prefix of each device's counters, and its labels."""
    families = [(row, _family(row, labels)) for row in rows]
    for guest, counters in guests.items():
        for prefix, values in devices(counters):
            for row, family in families:
                _add(family, (*guest, *values), counters.get(f"{prefix}.{row.field}"), row)
    yield from (family for _row, family in families)


def _vcpus(counters: Counters) -> Iterator[tuple[str, tuple[str, ...]]]:
    for number in range(_count(counters, "vcpu.maximum")):
        yield f"vcpu.{number}", (str(number),)


def _vcpus_with_states(counters: Counters) -> Iterator[tuple[str, tuple[str, ...]]]:
    for prefix, labels in _vcpus(counters):
        state = counters.get(f"{prefix}.state")
        yield prefix, (*labels, _STATES.get(state, "unknown") if isinstance(state, int) else "unknown")


def _named(counters: Counters, kind: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield network interfaces or disks, each name once."""
    seen: set[str] = set()
    for number in range(_count(counters, f"{kind}.count")):
        name = counters.get(f"{kind}.{number}.name")
        if isinstance(name, str) and _DEVICE.fullmatch(name) and name not in seen:
            seen.add(name)
            yield f"{kind}.{number}", (name,)


def _count(counters: Counters, field: str) -> int:
    count = counters.get(field)
    return min(max(count, 0), MOST_DEVICES) if isinstance(count, int) else 0


def _family(row: Row, labels: tuple[str, ...] = ()) -> CounterMetricFamily | GaugeMetricFamily:
    make = CounterMetricFamily if row.is_counter else GaugeMetricFamily
    return make(f"kubevirt_vmi_{row.name}", row.text, labels=(*_LABELS, *labels))


def _add(family: CounterMetricFamily | GaugeMetricFamily, labels: tuple[str, ...], value: object, row: Row) -> None:
    if isinstance(value, int) and value >= 0:
        family.add_metric(labels, value * row.factor)
