# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A minute of chaos (tests/chaos); `make chaos` runs an hour."""

from __future__ import annotations

import pytest

from tests.chaos.__main__ import chaos
from tests.e2e.cluster import Cluster

pytestmark = pytest.mark.lab

SECONDS, SEED = 60.0, 1


@pytest.mark.nightly
def test_a_minute_of_random_users_and_faults_duplicates_and_loses_no_guest(nodes: Cluster) -> None:
    assert chaos(nodes, seconds=SECONDS, seed=SEED, say=print) == []
