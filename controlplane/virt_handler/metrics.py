# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler counts beside its passes."""

from __future__ import annotations

from prometheus_client import Histogram

from controlplane.metrics import Metrics


class HandlerMetrics(Metrics):
    """Passes, and the domains that were started."""

    def __init__(self) -> None:
        super().__init__()
        self._starts = Histogram(
            "virtops_domain_start_seconds",
            "Defining and starting a domain",
            buckets=(0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0, 20.0),
            registry=self.registry,
        )

    def started(self, seconds: float) -> None:
        """Count a domain's start."""
        self._starts.observe(seconds)
