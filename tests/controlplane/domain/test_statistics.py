# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a launcher's statistics, which may be made up."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from controlplane.domain.statistics import MOST_DEVICES, Device, Statistics, read_statistics


def test_the_fields_are_read_by_device() -> None:
    reported: dict[str, object] = {
        "cpu.time": 3,
        "balloon.rss": 2,
        "vcpu.maximum": 2,
        "vcpu.current": 1,
        "vcpu.0.state": 1,
        "vcpu.0.time": 4,
        "vcpu.1.state": 0,
        "net.count": 1,
        "net.0.name": "tap0",
        "net.0.rx.bytes": 100,
        "block.count": 1,
        "block.0.name": "vda",
        "block.0.path": "/img/disk.img",
        "block.0.fl.reqs": 6,
    }
    assert read_statistics(reported) == Statistics(
        guest={"cpu.time": 3, "balloon.rss": 2},
        vcpus=(Device("0", {"time": 4}, "running"), Device("1", {}, "offline")),
        interfaces=(Device("tap0", {"rx.bytes": 100}),),
        disks=(Device("vda", {"fl.reqs": 6}),),
    )


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"cpu.time": "much", "cpu.user": -1, "balloon.rss": 1.5, "cpu.system": 1 << 64}, id="no counters"),
        pytest.param({"net.count": "one", "net.0.name": "tap0", "net.0.rx.bytes": 1}, id="no count"),
        pytest.param({"net.count": -1, "net.0.name": "tap0", "net.0.rx.bytes": 1}, id="a negative count"),
        pytest.param({"block.count": 1, "block.0.name": 'a"b', "block.0.rd.reqs": 1}, id="no plain name"),
        pytest.param({"block.count": 1, "block.0.name": "a" * 16, "block.0.rd.reqs": 1}, id="a long name"),
        pytest.param({"block.count": 1, "block.0.rd.reqs": 1}, id="no name"),
        pytest.param({"dirtyrate.calc_status": 1, "state.state": 1, "user.words": "x"}, id="unknown fields"),
    ],
)
def test_what_is_not_known_is_left_out(reported: dict[str, object]) -> None:
    assert read_statistics(reported) == Statistics()


@pytest.mark.parametrize("state", [3, -1, "running", None])
def test_a_virtual_cpu_has_a_known_state(state: object) -> None:
    assert read_statistics({"vcpu.maximum": 1, "vcpu.0.state": state}).vcpus == (Device("0", {}, "unknown"),)


def test_the_number_of_devices_is_limited() -> None:
    numbers = range(2 * MOST_DEVICES)
    reported: dict[str, object] = {"vcpu.maximum": 10**9, "net.count": 10**9, "block.count": 10**9}
    reported |= {f"net.{number}.name": f"tap{number}" for number in numbers}
    reported |= {f"block.{number}.name": f"vd{number}" for number in numbers}
    read = read_statistics(reported)
    assert {len(read.vcpus), len(read.interfaces), len(read.disks)} == {MOST_DEVICES}


def test_each_name_counts_once() -> None:
    reported: dict[str, object] = {"net.count": 2, "net.0.name": "tap0", "net.1.name": "tap0"}
    reported |= {"net.0.rx.bytes": 1, "net.1.rx.bytes": 2}
    assert read_statistics(reported).interfaces == (Device("tap0", {"rx.bytes": 1}),)


def test_a_large_response_is_not_kept() -> None:
    """A node would keep it of each launcher until the next page of metrics."""
    reported: dict[str, object] = {f"cpu.{number}": "x" * 80 for number in range(40_000)}
    assert len(str(asdict(read_statistics(reported)))) < 100
