# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random steps against a replica set. The checks are in random_set; a failure names its seed."""

from __future__ import annotations

import pytest

from tests.controlplane.virt_controller.replicaset.random_set import SetPlay

SEEDS = 20
STEPS = 250


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_no_surplus_is_created_and_no_wanted_vmi_deleted(seed: int) -> None:
    SetPlay(seed).run(STEPS)
