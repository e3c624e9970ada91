# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's clock, for processes; tests and the simulation bring their own."""

from __future__ import annotations

import time


class SystemClock:
    """engine.ports.Clock on this machine.

    monotonic() goes on while the host is suspended, as time does for everybody else: a Lease, a token or a silence is
    as old as the others see it. Sleeps (asyncio, threading) run on CLOCK_MONOTONIC, which stands still then: after a
    resume they end late by all the time slept, never early, and whoever wakes must look at this clock before acting.
    """

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        return time.time()
