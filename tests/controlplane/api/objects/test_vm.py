# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode_vm


@pytest.mark.parametrize(
    ("fields", "strategy"),
    [
        ({}, "Halted"),
        ({"running": None, "runStrategy": ""}, "Halted"),
        ({"running": False}, "Halted"),
        ({"running": True}, "Always"),
        ({"runStrategy": "Manual"}, "Manual"),
        ({"running": True, "runStrategy": "Manual"}, "Manual"),
    ],
    ids=str,
)
def test_a_machine_runs_only_when_its_spec_says_so(fields: dict[str, Any], strategy: str) -> None:
    """Admission refuses a spec that says nothing, or both; this code does not rely on it."""
    vm = decode_vm({"spec": {**fields, "template": {"spec": {"domain": {}}}}})

    assert vm.run_strategy == strategy
