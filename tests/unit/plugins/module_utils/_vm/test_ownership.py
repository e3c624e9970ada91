# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removed keys are noticed from the fields that an earlier apply owned."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import ownership

LIVE = {
    "metadata": {
        "labels": {"mine": "1", "other": "2"},
        "managedFields": [
            {"manager": "somebody", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:other": {}}}}},
            {
                "manager": "me",
                "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {".": {}, "f:mine": {}, "f:gone": {}}},
                    "f:spec": {"f:disks": {'k:{"name":"a"}': {".": {}, "f:name": {}}}, "f:set": {'v:"x"': {}}},
                },
            },
        ],
    },
    "spec": {"disks": [{"name": "a"}, {"name": "hotplugged"}], "set": ["x", "y"]},
}


def fields() -> dict[str, Any]:
    found = ownership.applied_fields(LIVE, "me")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("declared", "paths"),
    [
        pytest.param(
            {"metadata": {"labels": {"mine": "1"}}, "spec": {"disks": [{"name": "a"}], "set": ["x"]}},
            [],
            id="all is still declared; what is gone already does not count",
        ),
        pytest.param(
            {"metadata": {"labels": {}}, "spec": {"disks": [{"name": "b"}], "set": []}},
            [("metadata", "labels", "mine"), ("spec", "disks", '{"name": "a"}'), ("spec", "set", '"x"')],
            id="a key, an item and a value of a set are dropped",
        ),
    ],
)
def test_dropped_paths_are_those_applied_and_not_declared(declared: dict[str, Any], paths: list[Any]) -> None:
    assert ownership.dropped(fields(), declared, LIVE) == paths


def test_who_never_applied_owns_nothing() -> None:
    assert ownership.applied_fields(LIVE, "somebody") is None


def test_keyed_lists_show_in_the_fields() -> None:
    assert ownership.has_keyed_lists(LIVE)
    assert not ownership.has_keyed_lists({"metadata": {}})
