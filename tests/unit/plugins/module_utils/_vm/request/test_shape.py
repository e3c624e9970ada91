# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every type error is named by option and field, without its value."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import shape


def a_machine(machine: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": machine}}}


@pytest.mark.parametrize(
    ("option", "value", "where", "words"),
    [
        pytest.param("definition", {"spec": {"template": "canary"}}, (), "spec.template is not a mapping but a text"),
        pytest.param("definition", {"metadata": ["canary"]}, (), "definition: metadata is not a mapping but a list"),
        pytest.param("definition", a_machine({"domain": "canary"}), (), "spec.template.spec.domain is not a mapping"),
        pytest.param("definition", a_machine({"domain": None}), (), "spec.template.spec.domain is empty"),
        pytest.param("definition", a_machine({"volumes": "canary"}), (), "spec.volumes is not a list but a text"),
        pytest.param("spec", {"domain": True}, shape.MACHINE, "spec: domain is not a mapping but true or false"),
        pytest.param("spec", {"domain": {"devices": 1}}, shape.MACHINE, "domain.devices is not a mapping but a number"),
        pytest.param("disks", ["canary"], shape.DISKS, "disks[0]: the item has no name"),
        pytest.param("disks", [{"name": "a"}, {"name": "a"}], shape.DISKS, "disks[1]: name 'a' is there twice"),
        pytest.param(
            "data_volume_templates", [{}], ("spec", "dataVolumeTemplates"), "[0]: the item has no metadata.name"
        ),
    ],
)
def test_a_type_error_is_named(option: str, value: Any, where: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        shape.check(option, value, where)
    assert caught.value.message.startswith(option)
    assert words in caught.value.message
    assert "canary" not in caught.value.message


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": None, "spec": None}, id="empty keys"),
        pytest.param(a_machine({"domain": {"devices": {"disks": None}}}), id="a list that is taken away"),
        pytest.param(a_machine({"tolerations": [{"key": "a"}, {"key": "a"}]}), id="a list that is a whole"),
    ],
)
def test_well_formed_values_pass(value: Any) -> None:
    shape.check("definition", value)
