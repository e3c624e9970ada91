# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task's options mean, and which are refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.wish import Wish, wishes_from

WEB = {"name": "web", "namespace": "default"}


def test_an_entry_has_the_task_s_options_where_it_has_none_of_its_own() -> None:
    task = {"namespace": "default", "target_node": "node-1", "from_node": "node-9", "state": "present"}
    vms = [
        {"name": "a"},
        {"name": "b", "namespace": "other", "node_selector": {"disks": "fast"}},
        {"name": "c", "state": "absent"},
    ]
    assert wishes_from({**task, "vms": vms}) == [
        Wish("default", "a", "present", "node-9", "node-1"),
        Wish("other", "b", "present", "node-9", None, {"disks": "fast"}),
        Wish("default", "c", "absent", "node-9"),
    ]


def test_a_node_alone_means_all_that_is_there() -> None:
    assert wishes_from({"from_node": "node-1"}) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"name": "web"}, "namespace is missing: say where web is", id="no namespace"),
        pytest.param({"namespace": "default"}, "name is missing", id="no name"),
        pytest.param({**WEB, "target_node": ""}, "target_node is empty; leave it out", id="empty"),
        pytest.param({**WEB, "from_node": "A_B"}, "from_node 'A_B' is not a DNS subdomain", id="no node's name"),
        pytest.param({"from_node": "A_B"}, "from_node 'A_B' is not a DNS subdomain", id="no node's name, alone"),
        pytest.param({**WEB, "node_selector": {}}, "node_selector is empty", id="no labels"),
        pytest.param(
            {**WEB, "node_selector": {"ssd": True}}, r"node_selector\[ssd\]: the value is not a text", id="bool"
        ),
        pytest.param({**WEB, "state": "absent", "target_node": "n"}, "target_node says where to", id="cancel to"),
        pytest.param({**WEB, "from_node": "n", "target_node": "n"}, "are both n", id="there from there"),
        pytest.param({**WEB, "parallel": 0}, "parallel is 0", id="none at a time"),
        pytest.param({"vms": [WEB, WEB]}, "default/web is listed twice", id="twice"),
        pytest.param({"vms": [{"name": "a"}, {"namespace": "b"}]}, r"vms\[0\]: .*; vms\[1\]: name", id="all at once"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        wishes_from(options)
