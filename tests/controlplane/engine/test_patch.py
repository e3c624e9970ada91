# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest merge patch between two objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.engine.patch import merge_patch

TABLE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "nothing changed": ({"a": 1}, {"a": 1}, {}),
    "a value changed": ({"a": 1, "b": 2}, {"a": 3, "b": 2}, {"a": 3}),
    "a member is new": ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "a member went": ({"a": 1}, {}, {"a": None}),
    "inside an object": ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 3}}, {"a": {"c": None, "d": 3}}),
    "a list is replaced as a whole": ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
    "None means absent": ({}, {"a": None}, {}),
}


@pytest.mark.parametrize(("before", "after", "patch"), TABLE.values(), ids=TABLE.keys())
def test_a_patch_contains_the_differences(before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(before, after) == patch


VALUES = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@settings(max_examples=50)
@given(before=OBJECTS, after=OBJECTS)
def test_applying_the_patch_gives_the_wanted_object(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert _apply(before, merge_patch(before, after)) == after


def _apply(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _apply(merged.get(name), value)
    return merged
