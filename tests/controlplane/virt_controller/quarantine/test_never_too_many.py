# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events against the quarantine. The checks are in random_quarantine; a failure names its seed."""

from __future__ import annotations

import pytest

from tests.controlplane.virt_controller.quarantine.random_quarantine import MarkPlay


@pytest.mark.parametrize("seed", range(1, 21))
def test_no_more_nodes_than_allowed_are_quarantined_and_none_forever(seed: int) -> None:
    MarkPlay(seed).run(300)
