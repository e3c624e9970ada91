# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from prometheus_client import generate_latest

from controlplane.api.objects.resources import Key
from controlplane.hypervisor.domain import Progress, read_progress
from controlplane.virt_handler.metrics import HandlerMetrics


def test_the_duration_of_a_start_is_counted() -> None:
    metrics = HandlerMetrics()
    metrics.started(0.35)
    assert b'virtops_domain_start_seconds_bucket{le="0.4"} 1.0' in generate_latest(metrics.registry)


def test_machine_types_that_qemu_will_remove_are_exported() -> None:
    metrics, machines = HandlerMetrics("node-1"), ["pc-q35-4.2"]
    metrics.watch_deprecated_machines(lambda: machines)
    line = b'kubevirt_node_deprecated_machine_types{machine_type="pc-q35-4.2",node="node-1"} 1.0'
    assert line in generate_latest(metrics.registry)
    machines.clear()
    assert line not in generate_latest(metrics.registry)


def test_migration_progress_is_exported_until_the_migration_ends() -> None:
    metrics, key = HandlerMetrics("node-1"), Key("default", "vm")
    progress = Progress(total=900, remaining=400, sent=500, dirtied_per_second=30, memory_per_second=70)
    metrics.progressed(key, Progress())
    metrics.progressed(key, progress)
    labels = 'name="vm",namespace="default",node="node-1"'
    exported = {
        line.split("{")[0].removeprefix("kubevirt_vmi_migration_"): float(line.split()[-1])
        for line in generate_latest(metrics.registry).decode().splitlines()
        if labels in line
    }
    assert exported == {
        "data_bytes_total": 900.0,
        "data_remaining_bytes": 400.0,
        "data_processed_bytes": 500.0,
        "dirty_memory_rate_bytes": 30.0,
        "memory_transfer_rate_bytes": 70.0,
    }
    metrics.progressed(key, None)
    assert labels not in generate_latest(metrics.registry).decode()


def test_job_statistics_are_read_in_bytes_and_invalid_values_count_as_zero() -> None:
    statistics = {
        "data_total": 9,
        "memory_dirty_rate": 2,
        "memory_page_size": 4096,
        "memory_bps": "many",
        "data_remaining": -1,
    }
    assert read_progress(statistics) == Progress(total=9, dirtied_per_second=8192)
