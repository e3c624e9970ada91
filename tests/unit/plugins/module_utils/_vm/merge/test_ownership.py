# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removed keys are found through the fields that an earlier apply owned."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.merge import ownership

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
    applied = ownership.applied_fields(LIVE, "me")
    assert applied is not None
    return applied


@pytest.mark.parametrize(
    ("declared", "remaining"),
    [
        pytest.param(
            {"metadata": {"labels": {"mine": "1"}}, "spec": {"disks": [], "set": ["x"]}},
            None,
            id="all is still declared",
        ),
        pytest.param(
            {"metadata": {"labels": {}}, "spec": {"set": []}},
            {"labels": {"other": "2"}, "set": ["y"]},
            id="a key and a value of a set are dropped",
        ),
    ],
)
def test_applied_and_no_longer_declared_fields_are_removed(
    declared: dict[str, Any], remaining: dict[str, Any] | None
) -> None:
    after = ownership.without_dropped(LIVE, fields(), declared)
    if remaining is None:
        assert after is LIVE
    else:
        assert (after["metadata"]["labels"], after["spec"]["set"]) == (remaining["labels"], remaining["set"])


def test_fields_that_another_manager_applied_too_stay() -> None:
    labels = {"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}}
    theirs = {"f:metadata": {"f:labels": {"f:b": {}}}}
    entries = [("me", labels), ("other", theirs)]
    managed = [{"manager": name, "operation": "Apply", "fieldsV1": item} for name, item in entries]
    live = {"metadata": {"labels": {"a": "1", "b": "2"}, "managedFields": managed}}
    after = ownership.without_dropped(live, ownership.applied_fields(live, "me") or {}, {})
    assert after["metadata"]["labels"] == {"b": "2"}


def test_without_an_apply_nothing_is_owned() -> None:
    assert ownership.applied_fields(LIVE, "somebody") is None


VOLUMES = ("spec", "template", "spec", "volumes")


def a_vm(*names: str, declared: tuple[str, ...] | None = None, listed: Any = None) -> dict[str, Any]:
    """Return a VM with these volumes. declared: the annotation; listed: the managed fields of the list."""
    volumes = [{"name": name, "emptyDisk": {}} for name in names]
    applied = {"f:spec": {"f:template": {"f:spec": {} if listed is None else {"f:volumes": listed}}}}
    metadata: dict[str, Any] = {"managedFields": [{"manager": "me", "operation": "Apply", "fieldsV1": applied}]}
    if declared is not None:
        noted = ownership.note(a_vm(*declared))
        metadata["annotations"] = {"virtops.kubevirt/declared-items": ownership.encoded(noted)}
    return {"metadata": metadata, "spec": {"template": {"spec": {"volumes": volumes}}}}


@pytest.mark.parametrize(
    ("live", "declared", "remaining"),
    [
        pytest.param(a_vm("a", "b", "hot", declared=("a", "b"), listed={}), ["a"], ["a", "hot"], id="by the note"),
        pytest.param(a_vm("a", "hot", declared=(), listed={}), [], ["a", "hot"], id="an empty list was declared"),
        pytest.param(a_vm("a", "b", listed={}), ["a"], ["a"], id="applied as a whole, and nobody changed it"),
        pytest.param(a_vm("a", "b"), ["a"], ["a", "b"], id="the list is another's"),
        pytest.param(
            a_vm("a", "b", "hot", listed={'k:{"name":"a"}': {}, 'k:{"name":"b"}': {}}),
            ["a"],
            ["a", "hot"],
            id="tracked",
        ),
    ],
)
def test_items_of_others_stay(live: dict[str, Any], declared: list[str], remaining: list[str]) -> None:
    fields = ownership.applied_fields(live, "me") or {}
    after = ownership.without_dropped(live, fields, a_vm(*declared))
    assert [item["name"] for item in after["spec"]["template"]["spec"]["volumes"]] == remaining


def test_the_annotation_contains_names_of_fields_and_no_values() -> None:
    secret = {"name": "seed", "cloudInitNoCloud": {"userData": "canary"}}
    note = ownership.encoded(ownership.note({"spec": {"template": {"spec": {"hostname": "h", "volumes": [secret]}}}}))
    assert "canary" not in note
    assert "userData" in note
    assert "hostname" not in note, "the server remembers what is in no list"


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_an_unreadable_annotation_counts_as_none(text: str) -> None:
    assert ownership.noted({"metadata": {"annotations": {"virtops.kubevirt/declared-items": text}}}) == {}


def test_an_annotation_with_more_than_the_declaration_is_outdated() -> None:
    assert ownership.is_outdated(a_vm("a", declared=("a", "b")), a_vm("a"))
    assert not ownership.is_outdated(a_vm("a", declared=("a",)), a_vm("a", "b"))
    assert not ownership.is_outdated(a_vm("a"), a_vm("a"))


def test_keyed_lists_are_tracked_by_managed_fields() -> None:
    assert ownership.tracks_items(LIVE, ("spec", "disks"))
    assert not ownership.tracks_items(a_vm("a", listed={}), VOLUMES)


def test_a_replacement_keeps_fields_that_users_do_not_declare() -> None:
    live = {
        "metadata": {
            "labels": {"mine": "1", "theirs": "2"},
            "managedFields": [
                {"manager": "me", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:mine": {}}}}},
                {"manager": "argo", "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:theirs": {}}}, "f:spec": {"f:hostname": {}},
                }},
                {"manager": "virt-controller", "operation": "Update", "fieldsV1": {
                    "f:spec": {"f:firmware": {"f:uuid": {}}, "f:volumes": {}, "f:runStrategy": {}},
                }},
            ],
        },
        "spec": {"hostname": "h", "firmware": {"uuid": "u", "x": 1}, "volumes": [1], "runStrategy": "Halted"},
    }  # fmt: skip
    assert ownership.added_by_others(live, "me") == {
        "metadata": {"labels": {"theirs": "2"}}, "spec": {"firmware": {"uuid": "u"}}
    }  # fmt: skip
