# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of libvirt's statistics of a guest. Pure.

The peer may be a tenant's: its response may have ten thousands of fields, with any name. Only fields that become
metrics are kept, with limits on the number of devices and plain names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

GUEST = (
    *(f"cpu.{name}" for name in ("time", "user", "system")),
    *(f"balloon.{name}" for name in ("current", "maximum", "rss", "available", "unused", "usable", "disk_caches")),
    *(f"balloon.{name}" for name in ("swap_in", "swap_out", "major_fault", "minor_fault")),
)
VCPU = ("time", "wait", "delay")
INTERFACE = tuple(f"{way}.{name}" for way in ("rx", "tx") for name in ("bytes", "pkts", "errs", "drop"))
DISK = (*(f"{way}.{name}" for way in ("rd", "wr") for name in ("reqs", "bytes", "times")), "fl.reqs", "fl.times")
"""libvirt's names of the fields that are kept, below the device's."""
MOST_DEVICES = 256
"""Of each kind: admission allows no more."""
_NAME = re.compile(r"[a-z][a-z0-9]{0,14}", re.ASCII)
_COUNTER_LIMIT = 1 << 64
_STATES = {0: "offline", 1: "running", 2: "blocked"}
"""Of virtual CPUs, by libvirt's number."""


@dataclass(frozen=True, slots=True)
class Device:
    """A virtual CPU, an interface or a disk."""

    name: str
    """Of a virtual CPU: its number."""
    counters: Mapping[str, int]
    state: str = ""
    """Of a virtual CPU only."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counters of a guest, in libvirt's units."""

    guest: Mapping[str, int] = field(default_factory=dict)
    vcpus: tuple[Device, ...] = ()
    interfaces: tuple[Device, ...] = ()
    disks: tuple[Device, ...] = ()


def read_statistics(reported: Mapping[str, object]) -> Statistics:
    """Keep the known fields of what libvirt reports."""
    return Statistics(
        guest=_counters(reported, "", GUEST),
        vcpus=tuple(_vcpus(reported)),
        interfaces=tuple(_devices(reported, "net", INTERFACE)),
        disks=tuple(_devices(reported, "block", DISK)),
    )


def _vcpus(reported: Mapping[str, object]) -> Iterator[Device]:
    for number in range(_count(reported, "vcpu.maximum")):
        state = reported.get(f"vcpu.{number}.state")
        known = _STATES.get(state, "unknown") if isinstance(state, int) else "unknown"
        yield Device(str(number), _counters(reported, f"vcpu.{number}.", VCPU), known)


def _devices(reported: Mapping[str, object], kind: str, fields: tuple[str, ...]) -> Iterator[Device]:
    """Yield the devices with a plain name, each name once."""
    seen: set[str] = set()
    for number in range(_count(reported, f"{kind}.count")):
        name = reported.get(f"{kind}.{number}.name")
        if isinstance(name, str) and _NAME.fullmatch(name) and name not in seen:
            seen.add(name)
            yield Device(name, _counters(reported, f"{kind}.{number}.", fields))


def _counters(reported: Mapping[str, object], prefix: str, fields: tuple[str, ...]) -> Mapping[str, int]:
    values = {name: reported.get(f"{prefix}{name}") for name in fields}
    return {name: value for name, value in values.items() if isinstance(value, int) and 0 <= value < _COUNTER_LIMIT}


def _count(reported: Mapping[str, object], name: str) -> int:
    count = reported.get(name)
    return min(max(count, 0), MOST_DEVICES) if isinstance(count, int) else 0
