# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a process and its reconcilers, for every component. Labels have fixed values only, nothing that a user
can name.

Metrics of machines are in virt_controller.metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.engine.plan import Outcome
from controlplane.engine.runner import Load

_WORK_QUEUE: tuple[tuple[str, str, Callable[[Load], float]], ...] = (
    ("adds", "Total number of adds handled by workqueue", lambda load: load.added),
    ("depth", "Current depth of workqueue", lambda load: load.depth),
    (
        "unfinished_work_seconds",
        "How many seconds of work are in progress and not in work_duration yet. Large values indicate stuck workers.",
        lambda load: load.running_seconds,
    ),
    (
        "longest_running_processor_seconds",
        "How many seconds has the longest running processor for workqueue been running.",
        lambda load: load.longest_seconds,
    ),
)


class Metrics:
    """The registry of a process and its reconcile metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._passes = Counter(
            "virtops_reconcile_passes",
            "Passes over keys, by controller and result",
            ["controller", "result"],
            registry=self.registry,
        )
        self._retries = Counter(
            "kubevirt_workqueue_retries",
            "Total number of retries handled by workqueue",
            ["name"],
            registry=self.registry,
        )
        self._loads: dict[str, Callable[[], Load]] = {}
        self.registry.register(_Loads(self._loads))
        self._seconds = Histogram(
            "kubevirt_workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            ["name"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0),
            registry=self.registry,
        )

    def watch_load(self, controller: str, load: Callable[[], Load]) -> None:
        """Export a controller's load; called at each scrape, in another thread."""
        self._loads[controller] = load

    def version(self, kubevirt_version: str) -> None:
        """Register the version of KubeVirt that the process is compatible with."""
        info = Gauge("kubevirt_info", "Version information.", ["kubeversion"], registry=self.registry)
        info.labels(kubevirt_version).set(1)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Register a gauge; value is called at each scrape, in another thread."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def observed(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile; the callback of engine.runner.Runner."""
        self._passes.labels(controller, "error" if outcome.error is not None else "ok").inc()
        self._seconds.labels(controller).observe(seconds)
        if outcome.error is not None:
            self._retries.labels(controller).inc()


class _Loads(Collector):
    """The metrics of work queues, under upstream's names."""

    def __init__(self, loads: dict[str, Callable[[], Load]]) -> None:
        self._loads = loads

    def describe(self) -> Iterator[Metric]:
        """Declare nothing: there are no controllers yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        loads = {name: load() for name, load in self._loads.items()}
        for name, text, value in _WORK_QUEUE:
            make = CounterMetricFamily if name == "adds" else GaugeMetricFamily
            family = make(f"kubevirt_workqueue_{name}", text, labels=("name",))
            for controller, load in loads.items():
                family.add_metric((controller,), value(load))
            yield family
