# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between objects: what is sent, and what does not count."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.merge import compare


@pytest.mark.parametrize(
    ("live", "wanted", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 2, "c": 2}}, {"a": {"b": 2}}, id="a changed key"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}, id="a key that goes"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}, id="a list is a whole"),
        pytest.param({}, {"a": {}}, {"a": {}}, id="an empty mapping is something"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another shape"),
    ],
)
def test_applying_the_patch_gives_the_other_object(
    live: dict[str, Any], wanted: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert compare.merge_patch(live, wanted) == patch


@pytest.mark.parametrize(
    ("patch", "nulls", "only_nulls", "lists"),
    [
        pytest.param({"a": {"b": None}}, True, True, False, id="takes away"),
        pytest.param({"a": {"b": None}, "c": 1}, True, False, False, id="takes away and adds"),
        pytest.param({"a": {"b": []}}, False, False, True, id="a list"),
        pytest.param({"a": {}}, False, False, False, id="an empty mapping adds"),
    ],
)
def test_the_effect_of_a_patch(patch: dict[str, Any], nulls: bool, only_nulls: bool, lists: bool) -> None:
    assert compare.has_nulls(patch) is nulls
    assert compare.has_only_nulls(patch) is only_nulls
    assert compare.has_lists(patch) is lists


@pytest.mark.parametrize(
    ("text", "number"),
    [("1Ki", 1024), ("1k", 1000), ("500m", Decimal("0.5")), ("1e3", 1000), (2, 2), ("many", None), ("", None)],
)
def test_quantities_are_compared_as_in_kubernetes(text: object, number: object) -> None:
    assert compare.quantity(text) == number


def test_status_and_bookkeeping_do_not_count() -> None:
    one = {"metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "managedFields": []}, "status": {"x": 1}}
    one["metadata"]["annotations"] = {"virtops.kubevirt/declared-items": "{}"}
    assert compare.is_same_content(one, {"metadata": {"name": "a", "resourceVersion": "2"}})
