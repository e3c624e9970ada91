# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controlplane.api.objects.resources import Key
from controlplane.virt_handler.guest_statistics import MOST_DEVICES, GuestStatistics

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


async def exported(counters: Mapping[str, object]) -> dict[str, float]:
    """Return the values by name and own labels, of one guest."""

    async def read() -> Mapping[Key, Mapping[str, object]]:
        return {Key("default", "web"): counters}

    registry, statistics = CollectorRegistry(), GuestStatistics("node-1", read)
    registry.register(statistics)
    assert "web" not in generate_latest(registry).decode(), "nothing was read yet"
    await statistics.refresh()
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
    assert await exported(COUNTERS) == {
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


@pytest.mark.parametrize(
    "counters",
    [
        pytest.param({"cpu.time": "much", "cpu.user": -1, "balloon.rss": 1.5}, id="no counters"),
        pytest.param({"net.count": "one", "net.0.name": "tap0", "net.0.rx.bytes": 1}, id="no count"),
        pytest.param({"block.count": 1, "block.0.name": 'a"b', "block.0.rd.reqs": 1}, id="no plain name"),
        pytest.param({"block.count": 1, "block.0.rd.reqs": 1}, id="no name"),
    ],
)
async def test_what_a_launcher_makes_up_is_left_out(counters: dict[str, object]) -> None:
    assert await exported(counters) == {}


async def test_the_number_of_devices_is_limited_and_each_name_counts_once() -> None:
    many: dict[str, object] = {"block.count": 10**9, "net.count": 2}
    many |= {f"block.{number}.name": f"vd{number}" for number in range(100)}
    many |= {f"block.{number}.rd.reqs": 1 for number in range(100)}
    many |= {"net.0.name": "tap0", "net.1.name": "tap0", "net.0.rx.bytes": 1, "net.1.rx.bytes": 2}

    values = await exported(many)

    assert len(values) == MOST_DEVICES + 1
    assert values['network_receive_bytes_total interface="tap0"'] == 1
