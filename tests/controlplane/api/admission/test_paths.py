# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values are read and replaced by path, also in malformed objects."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.paths import list_at, value_at, with_value


@pytest.mark.parametrize(
    ("obj", "value"),
    [
        ({"a": {"b": [1]}}, [1]),
        ({"a": {"b": None}}, None),
        ({"a": {}}, None),
        ({"a": [{"b": 1}]}, None),
        ({"a": "b"}, None),
        (None, None),
    ],
    ids=repr,
)
def test_a_value_is_read_and_a_missing_one_is_none(obj: Any, value: Any) -> None:
    assert value_at(obj, "a", "b") == value
    assert list_at(obj, "a", "b") == (value or [])


@pytest.mark.parametrize("value", [{"0": 1}, "text", 7, True], ids=repr)
def test_a_value_of_another_type_counts_as_an_empty_list(value: Any) -> None:
    assert list_at({"a": value}, "a") == []


@pytest.mark.parametrize("parent", [{}, {"a": None}, {"a": {}}, {"a": {"b": 0}}], ids=repr)
def test_a_value_is_replaced_in_a_copy_and_missing_parents_are_created(parent: dict[str, Any]) -> None:
    before = repr(parent)

    assert with_value({**parent, "c": 2}, ("a", "b"), 1) == {"a": {"b": 1}, "c": 2}
    assert repr(parent) == before
