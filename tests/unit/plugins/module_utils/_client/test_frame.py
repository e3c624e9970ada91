# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be a mapping and is not, said with the option's name before Ansible looks into it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.frame import misshapen

SPEC = {
    "name": {"type": "str"},
    "cpu": {"type": "dict", "options": {"cores": {"type": "int"}}},
    "definition": {"type": "dict", "aliases": ["resource_definition"]},
    "vms": {"type": "list", "elements": "dict", "options": {"name": {"type": "str"}}},
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
    ],
)
def test_a_mapping_is_taken_in_writing_too(params: dict[str, Any]) -> None:
    assert misshapen(SPEC, params) == ""


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"cpu": 2}, "cpu: is to be a mapping, not a number"),
        ({"cpu": "2"}, "cpu: is to be a mapping, not a text"),
        ({"cpu": True}, "cpu: is to be a mapping, not true or false"),
        ({"cpu": [2]}, "cpu: is to be a mapping, not a list"),
        ({"resource_definition": "vm.yml"}, "definition: is to be a mapping, not a text"),
        ({"vms": "a,b"}, "vms: is to be a list of mappings; item 1 is a text"),
        ({"vms": [{"name": "a"}, "b"]}, "vms: is to be a list of mappings; item 2 is a text"),
        ({"vms": 3}, "vms: is to be a list of mappings; item 1 is a number"),
    ],
)
def test_what_is_no_mapping_is_refused_by_the_name_of_its_option(params: dict[str, Any], said: str) -> None:
    """Its value is not said: it may be a secret."""
    assert misshapen(SPEC, params) == said
