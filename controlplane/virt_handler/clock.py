# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's clocks, as engine.ports.Clock. The only reader of time in virt-handler."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic seconds for delays, wall time for stamps."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> float:
        return time.time()
