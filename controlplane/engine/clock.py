# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine's clock. Tests and the simulation have their own."""

from __future__ import annotations

import time


class SystemClock:
    """engine.ports.Clock on this machine.

    monotonic() goes on while the host is suspended, so that the age of a Lease or a token is the same for this process
    and for others. Sleeps (asyncio, threading) use CLOCK_MONOTONIC, which stops during a suspend: after a resume they
    end late, never early. Code that runs after a sleep must read this clock before it acts.
    """

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> float:
        return time.time()
