# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest

from controlplane.engine.clock import SystemClock


def test_the_monotonic_clock_goes_on_while_the_host_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process leads by then. CLOCK_MONOTONIC stops during the suspend, CLOCK_BOOTTIME does not."""
    clocks = {time.CLOCK_BOOTTIME: 5000.0, time.CLOCK_MONOTONIC: 1400.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: clocks[time.CLOCK_MONOTONIC])

    assert SystemClock().monotonic() == 5000.0
