# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every component counts of its reconcilers. Labels name only fixed things: no VM's text becomes one.

What machines are like is shown by virt_controller.metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controlplane.engine.plan import Outcome


class Metrics:
    """What is counted."""

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

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Show a number that is asked for when somebody looks, in another thread than ours."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def observed(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Count a pass; fits engine.runner.Runner."""
        self._passes.labels(controller, "error" if outcome.error is not None else "ok").inc()
        self._seconds.labels(controller).observe(seconds)
