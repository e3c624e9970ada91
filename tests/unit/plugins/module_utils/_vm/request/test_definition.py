# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From option definition to the object under the other options."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import manifest

NAMED = {"name": "web", "namespace": "default"}


def declared(params: dict[str, Any]) -> dict[str, Any]:
    return manifest.build(params).obj


def test_fields_of_the_server_are_dropped() -> None:
    vm = declared(
        {
            "definition": {
                "metadata": {**NAMED, "uid": "u", "resourceVersion": "7"},
                "spec": {},
                "status": {"ready": True},
            }
        }
    )
    assert vm["metadata"] == NAMED
    assert "status" not in vm


def test_the_annotation_of_another_vm_is_dropped() -> None:
    metadata = {**NAMED, "annotations": {"virtops.kubevirt/declared-items": "{}", "mine": "1"}}
    assert declared({"definition": {"metadata": metadata}})["metadata"]["annotations"] == {"mine": "1"}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        pytest.param({"definition": {"kind": "Pod"}}, "kind is 'Pod'", id="another kind"),
        pytest.param({"definition": {"apiVersion": "v1"}}, "definition: apiVersion 'v1' is not of", id="another group"),
        pytest.param({"api_version": "v1"}, "api_version: 'v1' is not of the group kubevirt.io", id="group by option"),
        pytest.param(
            {"definition": {"spec": [1]}}, "definition: spec is not a mapping but a list", id="spec is a list"
        ),
        pytest.param(
            {"definition": {"metadata": {"labels": {"v": 1}}}},
            "definition: metadata.labels[v]: the value is not a text",
            id="a number",
        ),
    ],
)
def test_a_definition_of_another_kind_is_refused_by_its_field(params: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument) as caught:
        declared({**NAMED, **params})
    assert words in caught.value.message


def test_an_older_api_version_is_sent_as_given() -> None:
    assert declared({**NAMED, "api_version": "kubevirt.io/v1alpha3"})["apiVersion"] == "kubevirt.io/v1alpha3"
