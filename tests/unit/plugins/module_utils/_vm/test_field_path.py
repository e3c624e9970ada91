# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of hidden_fields."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import field_path


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("metadata.managedFields", ["metadata", "managedFields"]),
        ("metadata.annotations[a.b/c]", ["metadata", "annotations", "a.b/c"]),
        ("a[b][c].d", ["a", "b", "c", "d"]),
    ],
)
def test_a_path_is_split_into_keys(text: str, keys: list[str]) -> None:
    assert field_path.parse(text) == keys


@pytest.mark.parametrize(
    ("text", "column"), [("metadata..x[", 10), ("a[b", 2), ("", 1), ("a[]", 4), ("a[b]c", 5), (".a", 1)]
)
def test_a_malformed_path_is_refused_with_the_column(text: str, column: int) -> None:
    with pytest.raises(BadArgument, match=f"error at column {column}"):
        field_path.parse(text)


def test_the_result_omits_the_fields() -> None:
    obj = {"a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}]}
    assert field_path.without(obj, [["a", "b"], ["l", "x"], ["no", "such"]]) == {"a": {"c": 2}, "l": [{"y": 2}]}
    assert obj["a"]["b"] == 1
