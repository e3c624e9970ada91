# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

import pytest

from controlplane.api.launch_plan import PLAN_ANNOTATION
from controlplane.api.objects.resources import NODE, POD, Key
from controlplane.kube.cache import (
    LAST_APPLIED,
    PartialObject,
    Store,
    by_lack_of_controller,
    parse_resource_version,
    trim,
)
from controlplane.kube.decoding import MAX_LEVELS, UnreadableError

KEY = Key("ns", "web")


def a_pod(name: str = "web", version: str = "1", **metadata: Any) -> bytes:
    return json.dumps({"metadata": {"name": name, "namespace": "ns", "resourceVersion": version, **metadata}}).encode()


def by_app(obj: PartialObject) -> list[str]:
    return [value for name, value in (obj.metadata.labels or {}).items() if name == "app"]


def a_store() -> Store:
    return Store(POD, {"app": by_app})


def test_an_object_is_found_by_key_and_by_its_index_values() -> None:
    store = a_store()

    store.put(a_pod(labels={"app": "x"}, ownerReferences=[{"uid": "o1"}, {"uid": "o2"}]))

    assert json.loads(store.get(KEY) or b"")["metadata"]["name"] == "web"
    assert list(store.keys()) == [KEY]
    assert set(store.indexed("app", "x")) == {KEY}
    assert set(store.indexed("owner", "o1")) == set(store.indexed("owner", "o2")) == {KEY}
    assert not store.indexed("app", "y")


def test_an_object_without_a_controlling_owner_is_indexed_by_its_namespace() -> None:
    store = Store(POD, {"free": by_lack_of_controller})
    store.put(a_pod("free"))
    store.put(a_pod("owned", ownerReferences=[{"uid": "o1"}]))
    store.put(a_pod("controlled", ownerReferences=[{"uid": "o1"}, {"uid": "o2", "controller": True}]))

    assert {key.name for key in store.indexed("free", "ns")} == {"free", "owned"}
    assert not store.indexed("free", "other")


def test_a_changed_object_is_indexed_again() -> None:
    store = a_store()
    store.put(a_pod(labels={"app": "x"}))

    store.put(a_pod(version="2", labels={"app": "y"}))

    assert not store.indexed("app", "x")
    assert set(store.indexed("app", "y")) == {KEY}


def test_a_removed_object_leaves_nothing_behind() -> None:
    store = a_store()
    store.put(a_pod(labels={"app": "x"}))

    store.remove(KEY)
    store.remove(KEY)

    assert store.get(KEY) is None
    assert not store.indexed("app", "x")
    assert not store._keys_by_value["app"]


def test_subscribers_get_before_and_after_once_the_cache_has_it() -> None:
    store, events = a_store(), []

    def callback(key: Key, before: bytes | None, after: bytes | None) -> None:
        events.append((key, before, after))
        assert store.get(key) == after

    store.subscribe(callback)
    store.put(a_pod())
    first = store.get(KEY)
    store.put(a_pod(version="2"))
    second = store.get(KEY)
    store.remove(KEY)

    assert events == [(KEY, None, first), (KEY, first, second), (KEY, second, None)]


def test_the_same_version_again_is_not_announced() -> None:
    store, events = a_store(), []
    store.put(a_pod())
    store.subscribe(lambda *change: events.append(change))

    store.put(a_pod())

    assert events == []


def test_a_removal_announces_the_last_state_from_the_server() -> None:
    store, events = a_store(), []
    store.put(a_pod())
    store.subscribe(lambda *change: events.append(change))

    store.remove(KEY, a_pod(version="9", phase="Failed", managedFields=[{}]))

    ((_unused, before, after),) = events
    assert json.loads(before)["metadata"] == {
        "name": "web",
        "namespace": "ns",
        "resourceVersion": "9",
        "phase": "Failed",
    }
    assert after is None


def test_a_removal_clears_the_index_of_the_cached_state_not_of_the_last_state() -> None:
    store = a_store()
    store.put(a_pod(labels={"app": "x"}))

    store.remove(KEY, a_pod(version="9", labels={"app": "y"}))

    assert not store._keys_by_value["app"]


def test_an_older_version_changes_nothing() -> None:
    store, events = a_store(), []
    store.put(a_pod(version="10"))
    store.subscribe(lambda *change: events.append(change))

    store.put(a_pod(version="9"))
    store.remove(KEY, a_pod(version="9"))

    assert store.version(KEY) == "10"
    assert events == []


def test_a_deletion_at_the_cached_version_is_applied() -> None:
    store = a_store()
    store.put(a_pod(version="10"))
    store.remove(KEY, a_pod(version="10"))
    assert store.get(KEY) is None


def test_followers_get_the_resource_version_which_never_goes_back() -> None:
    store, events = a_store(), []
    store.on_resource_version(events.append)

    for resource_version in (5, 5, 4, 7):
        store.move(resource_version)

    assert (events, store.resource_version) == ([5, 7], 7)


def test_followers_get_each_change_of_synced() -> None:
    store, events = a_store(), []
    store.on_synced(lambda: events.append(store.synced))

    for synced in (False, True, True, False):
        store.synced = synced

    assert events == [True, False]


def test_an_error_in_a_subscriber_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store, events = a_store(), []

    def broken(key: Key, before: bytes | None, after: bytes | None) -> None:
        raise RuntimeError("bug")

    store.subscribe(broken)
    store.subscribe(lambda *change: events.append(change))
    store.put(a_pod())

    assert len(events) == 1
    assert "cache subscriber failed" in caplog.text


def test_an_error_in_an_index_function_indexes_nothing_but_keeps_the_object(caplog: pytest.LogCaptureFixture) -> None:
    def broken(seen: PartialObject) -> Iterable[str]:
        raise RuntimeError("bug")

    store = Store(POD, {"broken": broken})
    store.put(a_pod())

    assert store.get(KEY) is not None
    assert "index function failed" in caplog.text


def test_trimming_drops_managed_fields_and_keeps_unknown_fields() -> None:
    raw = a_pod(managedFields=[{"manager": "x" * 1000}], unknown={"a": [1.5, None]})

    kept = json.loads(trim(raw[:-1] + b', "future": {"b": "c"}}', POD))

    assert kept == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "ns", "resourceVersion": "1", "unknown": {"a": [1.5, None]}},
        "future": {"b": "c"},
    }


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        ({LAST_APPLIED: "x" * 1000, "mine": "kept"}, {"annotations": {"mine": "kept"}}),
        ({LAST_APPLIED: "x" * 1000}, {}),
        ({PLAN_ANNOTATION: "x" * 1000, "mine": "kept"}, {"annotations": {"mine": "kept"}}),
        (None, {}),
    ],
    ids=["among others", "alone", "a plan", "null"],
)
def test_trimming_drops_fields_that_no_decision_uses(annotations: dict[str, str] | None, kept: dict[str, Any]) -> None:
    metadata = json.loads(trim(a_pod(annotations=annotations), POD))["metadata"]

    assert metadata == {"name": "web", "namespace": "ns", "resourceVersion": "1", **kept}


def test_the_status_of_a_node_is_not_kept() -> None:
    raw = b'{"metadata": {"name": "n1"}, "spec": {"taints": []}, "status": {"images": []}}'

    assert [sorted(json.loads(trim(raw, item))) for item in (NODE, POD)] == [
        ["apiVersion", "kind", "metadata", "spec"],
        ["apiVersion", "kind", "metadata", "spec", "status"],
    ]


@pytest.mark.parametrize("raw", [b"[]", b"{}", b'{"metadata": 1}', b"\xff"], ids=repr)
def test_data_that_is_no_object_is_refused_and_changes_nothing(raw: bytes) -> None:
    store = a_store()

    with pytest.raises(UnreadableError):
        store.put(raw)

    assert not store.keys()


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("end", ["put", "remove"])
@pytest.mark.parametrize("field", ["spec", "managedFields"])
def test_an_object_nested_too_deep_is_refused_and_changes_nothing(field: str, end: str) -> None:
    store, announced = a_store(), []
    key = store.put(b'{"metadata":{"name":"a","resourceVersion":"1"}}')
    cached = store.get(key)
    store.subscribe(lambda *change: announced.append(change))
    managed, spec = (nested(10_000) if field == name else b"{}" for name in ("managedFields", "spec"))
    deep = b'{"metadata":{"name":"a","resourceVersion":"2","managedFields":%s},"spec":%s}' % (managed, spec)

    with pytest.raises(UnreadableError):
        store.put(deep) if end == "put" else store.remove(key, deep)

    assert (store.get(key), store.version(key), announced) == (cached, "1", [])


@pytest.mark.parametrize("levels", [MAX_LEVELS - 1, MAX_LEVELS], ids=["as deep as may be", "one more"])
def test_a_kept_object_can_be_decoded_and_copied(levels: int) -> None:
    """The decoder accepts more levels than a copy of its result can have."""
    store, raw = a_store(), b'{"metadata":{"name":"a","resourceVersion":"1"},"spec":%s}' % nested(levels)
    if levels >= MAX_LEVELS:
        with pytest.raises(UnreadableError):
            store.put(raw)
    else:
        copy.deepcopy(json.loads(store.get(store.put(raw)) or b""))


@pytest.mark.parametrize("version", ["", "x", "\u00b2", "9" * 5000], ids=["none", "no number", "raised", "endless"])
def test_a_version_that_is_no_number_is_none(version: str) -> None:
    assert parse_resource_version(version) == 0
