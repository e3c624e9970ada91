# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The meaning of a task's options, and refusals before any request."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.request import MigrationRequest, requests_from

WEB = {"name": "web", "namespace": "default"}


def test_an_entry_inherits_the_options_of_the_task() -> None:
    task = {"namespace": "default", "target_node": "node-1", "from_node": "node-9", "state": "present"}
    vms = [
        {"name": "a"},
        {"name": "b", "namespace": "other", "node_selector": {"disks": "fast"}},
        {"name": "c", "state": "absent"},
    ]
    assert requests_from({**task, "vms": vms}) == [
        MigrationRequest("default", "a", "present", "node-9", "node-1"),
        MigrationRequest("other", "b", "present", "node-9", None, {"disks": "fast"}),
        MigrationRequest("default", "c", "absent", "node-9"),
    ]


def test_a_node_alone_means_all_its_machines() -> None:
    assert requests_from({"from_node": "node-1"}) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"name": "web"}, "namespace is missing: give the namespace of web", id="no namespace"),
        pytest.param({"namespace": "default"}, "name is missing", id="no name"),
        pytest.param({**WEB, "target_node": ""}, "target_node is empty; leave it out", id="empty"),
        pytest.param({**WEB, "from_node": "A_B"}, "from_node 'A_B' is not a DNS subdomain", id="no node's name"),
        pytest.param({"from_node": "A_B"}, "from_node 'A_B' is not a DNS subdomain", id="no node's name, alone"),
        pytest.param({**WEB, "node_selector": {}}, "node_selector is empty", id="no labels"),
        pytest.param(
            {**WEB, "node_selector": {"ssd": True}}, r"node_selector\[ssd\]: the value is not a text", id="bool"
        ),
        pytest.param(
            {**WEB, "node_selector": {"a b": "x"}}, r"node_selector: 'a b' is not a label's key: letters", id="bad key"
        ),
        pytest.param({**WEB, "node_selector": {"A_B/c": "x"}}, "'A_B/c' is not a label's key", id="bad prefix"),
        pytest.param({**WEB, "node_selector": {"a/b/c": "x"}}, "'a/b/c' is not a label's key", id="two prefixes"),
        pytest.param({**WEB, "node_selector": {"a" * 64: "x"}}, "is not a label's key", id="long key"),
        pytest.param({**WEB, "node_selector": {1: "x"}}, "'1' is not a label's key", id="a number for a key"),
        pytest.param(
            {**WEB, "node_selector": {"disks": "not fast"}},
            r"node_selector\[disks\] 'not fast' is not a label's value: letters",
            id="bad value",
        ),
        pytest.param({**WEB, "node_selector": {"disks": "x\n"}}, r"\[disks\] .* is not a label's value", id="a line"),
        pytest.param({**WEB, "node_selector": {"disks": "x" * 64}}, "is not a label's value", id="long value"),
        pytest.param({**WEB, "node_selector": {"disks": None}}, r"node_selector\[disks\] is empty", id="nothing"),
        pytest.param({"from_node": "n", "node_selector": {"a b": "x"}}, "'a b' is not a label's key", id="of all"),
        pytest.param(
            {"vms": [{**WEB, "node_selector": {"a b": "x"}}]}, r"vms\[0\]: node_selector: 'a b' is not", id="of one"
        ),
        pytest.param(
            {**WEB, "state": "absent", "target_node": "n"}, "target_node is the target of a migration", id="cancel to"
        ),
        pytest.param({**WEB, "from_node": "n", "target_node": "n"}, "are both n", id="there from there"),
        pytest.param({**WEB, "parallel": 0}, "parallel is 0", id="none at a time"),
        pytest.param({"vms": [WEB, WEB]}, "default/web is listed twice", id="twice"),
        pytest.param({"vms": [{"name": "a"}, {"namespace": "b"}]}, r"vms\[0\]: .*; vms\[1\]: name", id="all at once"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        requests_from(options)


@pytest.mark.parametrize(
    "labels",
    [{"disks": "fast"}, {"node-role.kubernetes.io/control-plane": ""}, {"A.b_c-1": "X.y_Z-2"}, {"a" * 63: "1"}],
)
def test_valid_labels_are_accepted(labels: dict[str, str]) -> None:
    assert requests_from({**WEB, "node_selector": labels}) == [MigrationRequest(**WEB, node_selector=labels)]
