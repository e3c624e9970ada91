# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a process and its reconcilers, for every component. Labels have fixed values only, nothing that a user
can name.

Metrics of machines are in virt_controller.metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controlplane.engine.plan import Outcome


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
        self._seconds = Histogram(
            "virtops_reconcile_seconds",
            "Duration of a pass",
            ["controller"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0),
            registry=self.registry,
        )

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
