# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No machine is lost, doubled or left standing by moving it: a quarter of what is played."""

from __future__ import annotations

import pytest

from tests.controlplane.simulation.transit_long import move_machines, silence

__all__ = ("silence",)


@pytest.mark.parametrize("seed", range(9, 13))
def test_whatever_goes_wrong_no_machine_is_lost_doubled_or_left_standing(seed: int) -> None:
    move_machines(seed)
