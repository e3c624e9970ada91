# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as a difference between a declaration and what is there."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import compare


@pytest.mark.parametrize(
    ("declared", "live", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {}, id="more than was declared is no difference"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, {"a": {"b": 1}}, id="only the changed key is sent"),
        pytest.param({"a": None}, {"a": 1}, {"a": None}, id="null takes away"),
        pytest.param({"a": None}, {}, {}, id="null of what is not there is nothing"),
        pytest.param({"a": {"b": 1, "c": None}}, {}, {"a": {"b": 1}}, id="nulls are not sent into what is new"),
        pytest.param({"rng": {}}, {}, {"rng": {}}, id="an empty object switches something on"),
        pytest.param({"a": True}, {"a": 1}, {"a": True}, id="true is not one"),
        pytest.param({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["x"]}, id="plain lists are wholes"),
        pytest.param({"memory": {"guest": "1Gi"}}, {"memory": {"guest": "1024Mi"}}, {}, id="equal quantities"),
        pytest.param({"requests": {"cpu": 1}}, {"requests": {"cpu": "1000m"}}, {}, id="quantity as a number"),
        pytest.param(
            {"labels": {"v": "1"}}, {"labels": {"v": "1.0"}}, {"labels": {"v": "1"}}, id="labels are no quantities"
        ),
    ],
)
def test_patch_holds_what_differs(declared: dict[str, Any], live: dict[str, Any], patch: dict[str, Any]) -> None:
    assert compare.merge_patch(declared, live, keep_items=False) == patch


LIVE_DISKS = {"disks": [{"name": "b", "serial": "s"}, {"name": "a", "bus": "virtio", "cache": "none"}]}


@pytest.mark.parametrize(
    ("declared", "keep_items", "patch"),
    [
        pytest.param([{"name": "a"}, {"name": "b"}], False, {}, id="order does not matter"),
        pytest.param(
            [{"name": "a", "bus": "sata"}, {"name": "b"}],
            False,
            {"disks": [{"name": "a", "bus": "sata", "cache": "none"}, {"name": "b", "serial": "s"}]},
            id="defaults in items survive a change beside them",
        ),
        pytest.param(
            [{"name": "a"}],
            False,
            {"disks": [{"name": "a", "bus": "virtio", "cache": "none"}]},
            id="an item that is not declared goes",
        ),
        pytest.param([{"name": "a"}], True, {}, id="an item of somebody else stays"),
        pytest.param(
            [{"name": "c"}],
            True,
            {"disks": [{"name": "c"}, *LIVE_DISKS["disks"]]},
            id="and is sent along when the list changes",
        ),
    ],
)
def test_named_lists_match_by_name(declared: list[Any], keep_items: bool, patch: dict[str, Any]) -> None:
    assert compare.merge_patch({"disks": declared}, LIVE_DISKS, keep_items=keep_items) == patch


@pytest.mark.parametrize(
    ("text", "number"),
    [("1Ki", 1024), ("1k", 1000), ("500m", Decimal("0.5")), ("1e3", 1000), (2, 2), ("many", None), ("", None)],
)
def test_quantity_is_read_as_kubernetes_does(text: object, number: object) -> None:
    assert compare.quantity(text) == number


def test_status_and_bookkeeping_are_no_content() -> None:
    one = {"metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "managedFields": []}, "status": {"x": 1}}
    assert compare.is_same_content(one, {"metadata": {"name": "a", "resourceVersion": "2"}})
