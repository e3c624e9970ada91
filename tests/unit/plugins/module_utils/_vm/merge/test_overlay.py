# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Merging declarations into objects: mappings by key, known lists by item, other lists as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.field_path import value_at
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.merge import compare, overlay
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import shape


def patch_of(live: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    return compare.merge_patch(live, overlay.over_live(live, declared))


@pytest.mark.parametrize(
    ("declared", "live", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {}, id="more than was declared is no difference"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, {"a": {"b": 1}}, id="only the changed key is sent"),
        pytest.param({"a": None}, {"a": 1}, {"a": None}, id="null takes away"),
        pytest.param({"a": None}, {}, {}, id="null of what is not there is nothing"),
        pytest.param({"a": {"b": 1, "c": None}}, {}, {"a": {"b": 1}}, id="nulls are not sent into what is new"),
        pytest.param({"labels": {"b": None}}, {}, {}, id="nulls make nothing around them"),
        pytest.param({"a": {"b": {"c": None}, "rng": {}}}, {}, {"a": {"rng": {}}}, id="nor deeper"),
        pytest.param({"labels": {"b": None}}, {"labels": {}}, {}, id="and an empty mapping stays"),
        pytest.param(
            {"spec": {"volumes": [{"name": "a", "emptyDisk": None}]}}, {"spec": {}}, {}, id="nor items that go"
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "a", "emptyDisk": None}, {"name": "b", "emptyDisk": {}}]}},
            {},
            {"spec": {"volumes": [{"name": "b", "emptyDisk": {}}]}},
            id="beside others",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"name": "a", "key": None}]}},
            {},
            {"spec": {"tolerations": [{"name": "a"}]}},
            id="a list without names has no items that go",
        ),
        pytest.param({"rng": {}}, {}, {"rng": {}}, id="an empty object switches something on"),
        pytest.param({"a": True}, {"a": 1}, {"a": True}, id="true is not one"),
        pytest.param({"a": ["x"]}, {"a": ["x", "y"]}, {"a": ["x"]}, id="plain lists are wholes"),
        pytest.param({"a": ["x"]}, {"a": ["y"]}, {"a": ["x"]}, id="also of the same length"),
        pytest.param({"a": ["x"]}, {}, {"a": ["x"]}, id="a new list"),
        pytest.param({"a": ["x"]}, {"a": "x"}, {"a": ["x"]}, id="a text is no list"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, {}, id="items may have more than was declared"),
        pytest.param({"a": []}, {}, {"a": []}, id="an empty list is something"),
        pytest.param(
            {"a": 0, "b": False, "c": ""}, {}, {"a": 0, "b": False, "c": ""}, id="so are zero, false and no text"
        ),
        pytest.param({"memory": {"guest": "1Gi"}}, {"memory": {"guest": "1024Mi"}}, {}, id="equal quantities"),
        pytest.param({"requests": {"cpu": 1}}, {"requests": {"cpu": "1000m"}}, {}, id="quantity as a number"),
        pytest.param(
            {"macAddress": "02-AA-bb-00-00-0C"}, {"macAddress": "02:aa:bb:00:00:0c"}, {}, id="an address is no text"
        ),
        pytest.param({"uuid": "5D307CA9-B3EF"}, {"uuid": "5d307ca9-b3ef"}, {}, id="nor is a UUID"),
        pytest.param(
            {"macAddress": "02:aa:bb:00:00:0d"},
            {"macAddress": "02:aa:bb:00:00:0c"},
            {"macAddress": "02:aa:bb:00:00:0d"},
            id="another address",
        ),
        pytest.param(
            {"labels": {"v": "1"}}, {"labels": {"v": "1.0"}}, {"labels": {"v": "1"}}, id="labels are no quantities"
        ),
    ],
)
def test_a_patch_contains_the_differences(
    declared: dict[str, Any], live: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert patch_of(live, declared) == patch
    after = overlay.over_live(live, declared)
    assert overlay.over_live(after, declared) is after, "what is as declared is not copied"


B = {"name": "b", "serial": "s", "disk": {}}
A = {"name": "a", "disk": {"bus": "virtio"}, "cache": "none"}


@pytest.mark.parametrize(
    ("declared", "after"),
    [
        pytest.param([{"name": "a"}, {"name": "b"}], [B, A], id="the order is the server's"),
        pytest.param([{"name": "a", "cache": "x"}], [B, {**A, "cache": "x"}], id="what an item does not name stays"),
        pytest.param([{"name": "c"}], [B, A, {"name": "c"}], id="a new one comes last"),
        pytest.param([{"name": "a", "cache": None}], [B], id="an item of nothing but null goes"),
        pytest.param(
            [{"name": "a", "cache": None, "disk": {}}], [B, {"name": "a", "disk": {"bus": "virtio"}}], id="a key goes"
        ),
        pytest.param(
            [{"name": "a", "lun": {}}], [B, {"name": "a", "cache": "none", "lun": {}}], id="one target, not two"
        ),
        pytest.param([{"name": "c", "lun": None}], [B, A], id="an item that was not there goes"),
        pytest.param(
            [{"name": "a", "lun": None, "cache": "x"}], [B, {**A, "cache": "x"}], id="null is no other target"
        ),
        pytest.param(["text"], [B, A, "text"], id="what is no item is for the server to refuse"),
        pytest.param([], [B, A], id="an empty list names nothing"),
        pytest.param(None, None, id="null takes the list away"),
    ],
)
def test_items_are_merged_by_their_key(declared: Any, after: Any) -> None:
    live: dict[str, Any] = {"spec": {"template": {"spec": {"domain": {"devices": {"disks": [B, A]}}}}}}
    declaration = {"spec": {"template": {"spec": {"domain": {"devices": {"disks": declared}}}}}}
    merged = overlay.over_live(live, declaration)
    assert value_at(merged, shape.DISKS) == after
    assert overlay.over_live(merged, declaration) is merged, "what is as declared is not copied"


def test_data_volume_templates_are_merged_by_the_name_in_their_metadata() -> None:
    path = ("spec", "dataVolumeTemplates")
    live = {
        "spec": {"dataVolumeTemplates": [{"metadata": {"name": "a"}, "spec": {"pvc": {}, "source": {"blank": {}}}}]}
    }
    above = [{"metadata": {"name": "a"}, "spec": {"storage": {}, "source": {"http": {"url": "u"}}}}]
    after = overlay.over_live(live, {"spec": {"dataVolumeTemplates": above}})
    assert value_at(after, path) == above, "storage excludes pvc, and there is one kind of source"


def test_nulls_survive_a_merge_of_declarations_and_remove_fields_of_the_object() -> None:
    declared = overlay.over_declared({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"c": None}, "d": None})
    assert declared == {"a": None, "b": {"c": None}, "d": None}
    assert overlay.over_live({"a": 2, "b": {"c": 2, "e": 3}}, declared) == {"b": {"e": 3}}


@pytest.mark.parametrize(
    "above",
    [
        pytest.param({"labels": {"b": None}}, id="a mapping of nothing else"),
        pytest.param({"spec": {"volumes": [{"name": "a", "emptyDisk": None}]}}, id="an item of nothing else"),
    ],
)
def test_nulls_survive_where_the_declaration_below_has_nothing(above: dict[str, Any]) -> None:
    assert overlay.over_declared({}, above) == above


def test_a_plain_list_replaces_the_one_of_the_declaration_below() -> None:
    """It is not compared with it as with a list of the object, where the server has filled in more."""
    assert overlay.over_declared({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}) == {"a": [{"b": 1}]}


def test_a_mapping_over_null_is_no_mismatch() -> None:
    assert overlay.over_declared({"a": None}, {"a": {"b": 1}}) == {"a": {"b": 1}}


GONE = {"name": "a", "cache": None}


def test_an_item_of_nothing_but_null_replaces_the_declared_item_below_it() -> None:
    """Otherwise a field that only the lower declaration names would keep the item."""
    below, above = ({"spec": {"volumes": [item]}} for item in ({"name": "a", "cache": "x", "serial": "s"}, GONE))
    assert overlay.over_declared(below, above) == above


@pytest.mark.parametrize(
    ("declared", "has_removals"),
    [
        pytest.param({"spec": {"volumes": [B, GONE]}}, True, id="an item of nothing but null"),
        pytest.param({"spec": {"volumes": [B, {**GONE, "disk": {}}]}}, False, id="an item that loses a field"),
        pytest.param({"spec": {"volumes": [{"name": "a"}]}}, False, id="an item of nothing"),
        pytest.param({"spec": {"volumes": None}}, False, id="no list"),
        pytest.param({"spec": {"tolerations": [GONE]}}, False, id="a list without names"),
        pytest.param(
            {"spec": {"dataVolumeTemplates": [{"metadata": {"name": "a"}, "spec": None}]}}, True, id="templates"
        ),
    ],
)
def test_a_declaration_with_removals(declared: dict[str, Any], has_removals: bool) -> None:
    assert overlay.has_removals(declared) is has_removals


def test_a_mapping_over_a_scalar_is_refused_in_a_declaration_and_replaces_it_in_the_object() -> None:
    with pytest.raises(overlay.Mismatch, match=r"a\.b") as refusal:
        overlay.over_declared({"a": {"b": "text"}}, {"a": {"b": {"c": 1}}})
    assert (refusal.value.path, refusal.value.below) == (("a", "b"), "text")
    assert overlay.over_live({"a": "text"}, {"a": {"c": 1}}) == {"a": {"c": 1}}
