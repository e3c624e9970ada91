# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-busy: a guest that keeps writing 16 MiB of its memory moves to another node."""

from __future__ import annotations

from tests.bench.moves import measure
from tests.bench.node_start import Report
from tests.bench.ticks import BUSY
from tests.e2e.deployed import deployed

RATIO_AT_MOST = 2.5


def run(report: Report) -> None:
    """Measure on its own cluster. Raises AssertionError after the last report when the limit is exceeded."""
    with deployed("bench", nodes=2) as cluster:
        measure(cluster, report, "mig-busy", BUSY, at_most=RATIO_AT_MOST)
