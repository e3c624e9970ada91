# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that must be a mapping or a text, checked by name before Ansible reads inside them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.shapes import misshapen

SPEC = {
    "name": {"type": "str"},
    "key": {"type": "path", "aliases": ["key_file"]},
    "cpu": {"type": "dict", "options": {"cores": {"type": "int"}, "model": {"type": "str"}}},
    "cloud_init": {"type": "dict", "options": {"user_data": {"type": "str"}, "network_data": {"type": "str"}}},
    "hidden": {"type": "list", "elements": "str"},
    "definition": {"type": "dict", "aliases": ["resource_definition"]},
    "vms": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str"}, "cpu": {"type": "dict", "options": {"model": {"type": "str"}}}},
    },
}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 7, "cpu": None, "vms": None},
        {"cpu": {"cores": 2}, "vms": [{"name": "a"}]},
        {"cpu": "cores=2", "vms": ['{"name": "a"}', "name=b"]},
        {"cpu": '{"cores": 2}', "vms": '[{"name": "a"}]'},
        {"vms": []},
        {"hidden": ["a", 1], "cloud_init": {"user_data": "#cloud-config", "network_data": None}},
        {"hidden": "a,b"},
        {"cpu": "model=[x]"},
    ],
)
def test_a_mapping_as_a_text_is_accepted(params: dict[str, Any]) -> None:
    assert misshapen(SPEC, params) == ""


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"cpu": 2}, "cpu: must be a mapping, not a number"),
        ({"cpu": "2"}, "cpu: must be a mapping, not a text"),
        ({"cpu": True}, "cpu: must be a mapping, not true or false"),
        ({"cpu": [2]}, "cpu: must be a mapping, not a list"),
        ({"resource_definition": "vm.yml"}, "definition: must be a mapping, not a text"),
        ({"vms": "a,b"}, "vms: must be a list of mappings; item 1 is a text"),
        ({"vms": [{"name": "a"}, "b"]}, "vms: must be a list of mappings; item 2 is a text"),
        ({"vms": [None]}, "vms: must be a list of mappings; item 1 is null"),
        ({"vms": [["a"]]}, "vms: must be a list of mappings; item 1 is a list"),
        ({"vms": 3}, "vms: must be a list of mappings; item 1 is a number"),
    ],
)
def test_a_value_that_is_no_mapping_is_refused_by_the_name_of_its_option(params: dict[str, Any], problem: str) -> None:
    """The message omits the value: it may be a secret."""
    assert misshapen(SPEC, params) == problem


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"name": ["64Mi"]}, "name: must be a text, not a list"),
        ({"name": {"a": "b"}}, "name: must be a text, not a mapping"),
        ({"key_file": ["a"]}, "key: must be a text, not a list"),
        ({"cpu": {"model": {"a": "b"}}}, "cpu.model: must be a text, not a mapping"),
        ({"cpu": '{"model": ["a"]}'}, "cpu.model: must be a text, not a list"),
        ({"vms": [{"name": "a"}, {"name": ["b"]}]}, "vms[1].name: must be a text, not a list"),
        ({"vms": [{"cpu": {"model": []}}]}, "vms[0].cpu.model: must be a text, not a list"),
        ({"vms": [{"cpu": 2}]}, "vms[0].cpu: must be a mapping, not a number"),
        ({"hidden": ["a", {"b": "c"}]}, "hidden: must be a list of texts; item 2 is a mapping"),
        ({"hidden": [None]}, "hidden: must be a list of texts; item 1 is null"),
    ],
)
def test_a_value_is_not_converted_to_a_text(params: dict[str, Any], problem: str) -> None:
    """Ansible would send "{'a': 'b'}"."""
    assert misshapen(SPEC, params).startswith(problem)


@pytest.mark.parametrize(
    ("params", "remedy"),
    [
        ({"name": ["64Mi"]}, "; write one text, in quotation marks where it begins with { or ["),
        ({"cloud_init": {"user_data": {"hostname": "x"}}}, "after the line #cloud-config"),
        ({"cloud_init": {"network_data": {"version": 2}}}, "; write it as a block (|), or '| to_nice_yaml'"),
    ],
)
def test_a_value_that_is_no_text_is_refused_with_a_remedy(params: dict[str, Any], remedy: str) -> None:
    assert remedy in misshapen(SPEC, params)
