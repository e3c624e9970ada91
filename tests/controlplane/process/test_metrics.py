# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of reconcilers and their work queues."""

from __future__ import annotations

from prometheus_client import generate_latest

from controlplane.engine.plan import Outcome
from controlplane.engine.runner import Load
from controlplane.process.metrics import Metrics


def exported(metrics: Metrics) -> dict[str, float]:
    """Return the values of the work queue `vm`, without its histogram's buckets."""
    lines = [line for line in generate_latest(metrics.registry).decode().splitlines() if '{name="vm"}' in line]
    return {
        line.partition("{")[0].removeprefix("kubevirt_workqueue_"): float(line.rpartition(" ")[2])
        for line in lines
        if "_created" not in line
    }


def test_a_work_queue_has_upstreams_metrics() -> None:
    metrics = Metrics()
    metrics.watch_load("vm", lambda: Load(added=7, depth=2, running_seconds=1.5, longest_seconds=1.0))
    metrics.observed("vm", Outcome(), 0.25)
    metrics.observed("vm", Outcome(error=ValueError("x")), 0.5)

    assert exported(metrics) == {
        "adds_total": 7,
        "depth": 2,
        "unfinished_work_seconds": 1.5,
        "longest_running_processor_seconds": 1,
        "retries_total": 1,
        "work_duration_seconds_count": 2,
        "work_duration_seconds_sum": 0.75,
    }


def test_a_process_names_the_kubevirt_version_that_it_is_compatible_with() -> None:
    metrics = Metrics()
    metrics.version("v1.7.0")

    assert b'kubevirt_info{kubeversion="v1.7.0"} 1.0' in generate_latest(metrics.registry)
