# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from prometheus_client import generate_latest

from controlplane.virt_handler.metrics import HandlerMetrics


def test_the_time_of_a_start_is_counted() -> None:
    metrics = HandlerMetrics()
    metrics.started(0.35)
    assert b'virtops_domain_start_seconds_bucket{le="0.4"} 1.0' in generate_latest(metrics.registry)
