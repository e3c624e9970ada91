# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that move survive whatever goes wrong on their way: 10^5 steps, in files that workers can share.

test_transit_1 to 4 have their seeds from here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.controlplane.simulation.transit import TransitPlay

STEPS = 6_250
"""Of each seed: about three seconds of a processor."""
AT_LEAST = 10
"""Of either end, and of what went wrong just where it mattered: what never happens proves little."""


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Refusals are the point here; thousands of log records about them are not."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def move_machines(seed: int) -> None:
    """Play one seed. Raises Breach."""
    play = TransitPlay(seed)
    play.run(STEPS)
    assert min(play.outcomes["Succeeded"], play.outcomes["Failed"]) >= AT_LEAST
    assert sum(play.struck.values()) >= AT_LEAST
