# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes take a machine."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.nodes import trouble
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import a_node


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (a_node("n"), ""),
        ({**a_node("n"), "spec": {"unschedulable": True}}, "it is cordoned"),
        ({"metadata": {"name": "n"}}, "it runs no machines"),
        (a_node("n", **{"kubevirt.io/schedulable": "false"}), "is 'false', not 'true'"),
    ],
)
def test_why_a_node_takes_none(node: dict[str, Any], words: str) -> None:
    found = trouble(node)
    assert found is None if words == "" else words in str(found)
