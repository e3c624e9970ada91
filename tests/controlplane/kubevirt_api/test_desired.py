# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api import desired


@pytest.mark.parametrize("empty", [{}, {"metadata": None, "spec": None}])
def test_an_object_that_says_nothing_is_an_answer_everywhere(empty: dict[str, Any]) -> None:
    assert not desired.is_deleting(empty)
    assert desired.run_strategy(empty) == "Halted"


@pytest.mark.parametrize(
    ("spec", "strategy"),
    [({"running": True}, "Always"), ({"running": False}, "Halted"), ({"runStrategy": "Manual"}, "Manual")],
)
def test_the_old_switch_stands_for_a_strategy(spec: dict[str, Any], strategy: str) -> None:
    assert desired.run_strategy({"spec": spec}) == strategy
