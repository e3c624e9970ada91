# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over HTTP."""

from __future__ import annotations

import aiohttp
import pytest

from controlplane.engine.plan import Outcome
from controlplane.virt_controller.health import Health, Metrics


@pytest.mark.parametrize(
    ("missing", "status", "text"),
    [([], 200, "ok\n"), (["pods"], 503, "waiting for pods\n")],
    ids=["ready", "caches not filled"],
)
async def test_readiness_says_what_is_missing(missing: list[str], status: int, text: str, unused_tcp_port: int) -> None:
    metrics = Metrics()
    metrics.observed("vm", Outcome(), 0.01)
    metrics.gauge("virtops_leader", "x", lambda: 1.0)
    health = Health(unused_tcp_port, metrics, lambda: missing)
    await health.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as session:
            async with session.get("/readyz") as answer:
                assert (answer.status, await answer.text()) == (status, text)
            async with session.get("/healthz") as answer:
                assert answer.status == 200
            async with session.get("/metrics") as answer:
                shown = await answer.text()
    finally:
        await health.close()
    assert 'virtops_reconcile_passes_total{controller="vm",result="ok"} 1.0' in shown
    assert "virtops_leader 1.0" in shown
