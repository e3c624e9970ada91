# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes accept a machine."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.nodes import check, trouble
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.request import MigrationRequest
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import a_guest, a_node


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (a_node("n"), ""),
        ({**a_node("n"), "spec": {"unschedulable": True}}, "it is cordoned"),
        ({"metadata": {"name": "n"}}, "it runs no machines"),
        (a_node("n", **{"kubevirt.io/schedulable": "false"}), "is 'false', not 'true'"),
    ],
)
def test_why_a_node_does_not_accept_a_machine(node: dict[str, Any], words: str) -> None:
    reason = trouble(node)
    assert reason is None if words == "" else words in str(reason)


def test_the_current_node_is_no_target(api: Api) -> None:
    """It may have got the labels a moment ago."""
    request = MigrationRequest("default", "web", node_selector={"disks": "fast"})
    with pytest.raises(VirtError, match="no other node has them"):
        check(api, request, a_guest("web", "node-3"), None)
