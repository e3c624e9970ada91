# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controlplane.api.objects.resources import Key
from controlplane.domain import statistics
from controlplane.domain.statistics import Statistics, read_statistics
from controlplane.virt_handler.guest_statistics import GUEST, NETWORK, STORAGE, VCPU, GuestStatistics, Row
from tests.controlplane.virt_handler.builders import vmi_object
from tests.controlplane.virt_handler.fakes import FakeCache

COUNTERS: dict[str, object] = {
    "cpu.time": 3_000_000_000,
    "cpu.user": 1_000_000_000,
    "balloon.current": 1024,
    "balloon.rss": 2048,
    "balloon.major_fault": 7,
    "vcpu.maximum": 2,
    "vcpu.0.state": 1,
    "vcpu.0.time": 2_000_000_000,
    "vcpu.0.delay": 500_000_000,
    "net.count": 1,
    "net.0.name": "tap0",
    "net.0.rx.bytes": 100,
    "net.0.tx.drop": 1,
    "block.count": 2,
    "block.0.name": "vda",
    "block.0.rd.reqs": 4,
    "block.0.wr.times": 250_000_000,
    "block.1.name": "vdb",
    "block.1.fl.reqs": 6,
}


def a_machine(disks: int = 2, **cpu: int) -> dict[str, Any]:
    """Return a VMI with this many disks."""
    machine = vmi_object("Running")
    machine["spec"]["domain"]["cpu"] = {"cores": 2, **cpu}
    machine["spec"]["domain"]["devices"]["disks"] = [
        {"name": f"disk-{number}", "disk": {"bus": "virtio"}} for number in range(disks)
    ]
    return machine


async def exported(counters: Mapping[str, object], machine: dict[str, Any] | None) -> dict[str, float]:
    """Return the values by name and own labels, of one guest."""

    async def read() -> Mapping[Key, Statistics]:
        return {Key("default", "web"): read_statistics(counters)}

    registry, vmis = CollectorRegistry(), FakeCache()
    collector = GuestStatistics("node-1", read, FakeCache(), vmis)
    registry.register(collector)
    if machine is not None:
        vmis.put(machine)
    assert "web" not in generate_latest(registry).decode(), "nothing was read yet"
    await collector.refresh()
    lines = [line for line in generate_latest(registry).decode().splitlines() if 'name="web"' in line]
    assert all('namespace="default"' in line and 'node="node-1"' in line for line in lines)
    values = {}
    for line in lines:
        name, _unused, rest = line.removeprefix("kubevirt_vmi_").partition("{")
        labels, _unused, value = rest.rpartition("} ")
        own = [label for label in labels.split(",") if label.split("=")[0] not in ("node", "namespace", "name")]
        values[" ".join((name, *own))] = float(value)
    return values


async def test_counters_become_metrics_in_seconds_and_bytes() -> None:
    assert await exported(COUNTERS, a_machine()) == {
        "cpu_usage_seconds_total": 3,
        "cpu_user_usage_seconds_total": 1,
        "memory_actual_balloon_bytes": 1024 * 1024,
        "memory_resident_bytes": 2048 * 1024,
        "memory_pgmajfault_total": 7,
        'vcpu_seconds_total id="0" state="running"': 2,
        'vcpu_delay_seconds_total id="0"': 0.5,
        'network_receive_bytes_total interface="tap0"': 100,
        'network_transmit_packets_dropped_total interface="tap0"': 1,
        'storage_iops_read_total drive="vda"': 4,
        'storage_write_times_seconds_total drive="vda"': 0.25,
        'storage_flush_requests_total drive="vdb"': 6,
    }


async def test_devices_that_the_machine_does_not_have_are_left_out() -> None:
    """A launcher that invents names would fill the monitoring system with series."""
    invented: dict[str, object] = {"vcpu.maximum": 9, "net.count": 2, "block.count": 3}
    invented |= {f"vcpu.{number}.wait": 1 for number in range(9)}
    invented |= {"net.0.name": "tap0", "net.1.name": "tap1", "net.0.rx.bytes": 1, "net.1.rx.bytes": 1}
    invented |= {f"block.{number}.name": name for number, name in enumerate(("vda", "vdb", "sda"))}
    invented |= {f"block.{number}.rd.reqs": 1 for number in range(3)}

    assert set(await exported(invented, a_machine(disks=1, sockets=1, maxSockets=2))) == {
        *(f'vcpu_wait_seconds_total id="{number}"' for number in range(4)),
        'network_receive_bytes_total interface="tap0"',
        'storage_iops_read_total drive="vda"',
    }


async def test_a_machine_without_interfaces_has_no_metrics_of_any() -> None:
    machine = a_machine()
    machine["spec"]["domain"]["devices"]["interfaces"] = []
    assert not any(name.startswith("network") for name in await exported(COUNTERS, machine))


@pytest.mark.parametrize("machine", [None, {**a_machine(), "spec": "?"}], ids=["unknown", "unreadable"])
async def test_an_unknown_machine_has_no_metrics_of_devices(machine: dict[str, Any] | None) -> None:
    values = await exported(COUNTERS, machine)
    assert values["cpu_usage_seconds_total"] == 3
    assert not any(name.startswith(("vcpu", "network", "storage")) for name in values)


@pytest.mark.parametrize(
    ("rows", "fields"),
    [(GUEST, statistics.GUEST), (VCPU, statistics.VCPU), (NETWORK, statistics.INTERFACE), (STORAGE, statistics.DISK)],
    ids=["guest", "virtual CPUs", "interfaces", "disks"],
)
def test_each_field_that_is_read_is_exported(rows: tuple[Row, ...], fields: tuple[str, ...]) -> None:
    assert sorted(row.field for row in rows) == sorted(fields)
