# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is removed, and what is left alone because it is somebody else's. The rest is proven on a real API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.objects import run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.readiness import GENERATION

OURS = {"app.kubernetes.io/managed-by": "virtops.kubevirt", "app.kubernetes.io/part-of": "kubevirt"}
TEMPLATE = "deprecated.daemonset.template.generation"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "production"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ca", "namespace": "production"}}


class Cluster:
    """Objects with labels, by kind; what is deleted is gone at once."""

    def __init__(self, **labels: dict[str, str] | None) -> None:
        self.labels = labels
        self.deleted: list[str] = []

    def kinds(self, _api_version: str) -> dict[str, tuple[str, bool]]:
        return {"Namespace": ("namespaces", False), "Secret": ("secrets", True)}

    def get(self, resource: Resource, name: str) -> dict[str, Any] | None:
        if resource.kind not in self.labels or resource.kind in self.deleted:
            return None
        metadata = {"name": name, "uid": "u-1", "labels": self.labels[resource.kind]}
        return {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata}

    def read_all(self, resource: Resource, *, fields: str) -> tuple[list[dict[str, Any]], str]:
        found = self.get(resource, fields.removeprefix("metadata.name="))
        return [found] if found else [], "1"

    def delete(self, resource: Resource, _name: str, _options: Mapping[str, Any], *, dry_run: bool) -> bool:
        if not dry_run:
            self.deleted.append(resource.kind)
        return True


def remove(cluster: Cluster, *definitions: dict[str, Any], check: bool = False, **only: Any) -> dict[str, Any]:
    params = {
        "definitions": list(definitions),
        "state": "absent",
        "labels": {},
        "only_with_labels": only.get("only", OURS),
        "wait": True,
        "wait_timeout": 0,
    }
    return run(params, cluster, check_mode=check, diff=False)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(None, id="none"),
        pytest.param({"team": "shop"}, id="others"),
        pytest.param({**OURS, "app.kubernetes.io/part-of": "shop"}, id="one has another value"),
        pytest.param({"app.kubernetes.io/managed-by": "virtops.kubevirt"}, id="one is missing"),
    ],
)
def test_what_does_not_carry_the_labels_is_left_alone_named_and_not_awaited(labels: dict[str, str] | None) -> None:
    cluster = Cluster(Namespace=labels)

    result = remove(cluster, NAMESPACE)

    assert cluster.deleted == []
    assert result == {"changed": False, "changes": [], "left_alone": ["Namespace production"], "not_ready_nodes": []}


@pytest.mark.parametrize("check", [False, True], ids=["run", "check mode"])
def test_what_carries_them_goes(check: bool) -> None:
    cluster = Cluster(Namespace={**OURS, "more": "1"})

    result = remove(cluster, NAMESPACE, check=check)

    assert cluster.deleted == ([] if check else ["Namespace"])
    assert result == {"changed": True, "changes": ["Namespace production"], "left_alone": [], "not_ready_nodes": []}


def test_without_labels_to_carry_all_goes() -> None:
    cluster = Cluster(Namespace=None)

    assert remove(cluster, NAMESPACE, only={})["changed"] is True
    assert cluster.deleted == ["Namespace"]


class Applied:
    """A Secret that takes what is applied to it."""

    def __init__(self) -> None:
        applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData": "canary"}'}
        self.stored = {
            **SECRET,
            "metadata": {**SECRET["metadata"], "annotations": applied},
            "data": {"key": "Y2FuYXJ5"},
        }

    def kinds(self, _api_version: str) -> dict[str, tuple[str, bool]]:
        return {"Secret": ("secrets", True)}

    def get(self, _resource: Resource, _name: str) -> dict[str, Any]:
        return self.stored

    def apply(self, _resource: Resource, obj: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        after = {**self.stored, "data": obj["data"]}
        self.stored = self.stored if dry_run else after
        return after


def test_a_secret_of_equal_length_is_a_change_and_is_not_shown() -> None:
    cluster = Applied()
    params = {"state": "present", "labels": {}, "only_with_labels": {}, "wait": False, "wait_timeout": 1}
    rotated = {**params, "definitions": [{**SECRET, "data": {"key": "Y2FuYXJ6"}}]}

    result = run(rotated, cluster, check_mode=False, diff=True)

    assert result["changed"] is True
    assert result["diff"][0]["after"]["data"] == {"key": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER (changed)"}
    assert not [text for text in ("canary", "Y2FuYXJ5", "Y2FuYXJ6") if text in str(result)]
    assert run(rotated, cluster, check_mode=False, diff=True)["changed"] is False


def test_what_goes_with_its_namespace_is_not_said_to_stay() -> None:
    assert remove(Cluster(Namespace=OURS, Secret=None), NAMESPACE, SECRET)["left_alone"] == []
    assert remove(Cluster(Namespace=None, Secret=None), NAMESPACE, SECRET)["left_alone"] == [
        "Secret production/ca",
        "Namespace production",
    ]


def condition(ready: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": ready}]}


class TwoNodes(Cluster):
    """A DaemonSet that runs on one of two nodes; the other is not Ready."""

    def kinds(self, _api_version: str) -> dict[str, tuple[str, bool]]:
        return {"DaemonSet": ("daemonsets", True)}

    def get(self, _resource: Resource, name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "kubevirt", "annotations": {TEMPLATE: "1"}}
        status = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 1}
        selector = {"matchLabels": {"kubevirt.io": "virt-node"}}
        return {"kind": "DaemonSet", "metadata": metadata, "spec": {"selector": selector}, "status": status}

    def apply(self, resource: Resource, obj: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        assert not dry_run
        return self.get(resource, obj["metadata"]["name"])

    def list(self, resource: Resource, *, labels: str = "") -> list[dict[str, Any]]:
        rows = {"a": "True", "b": "Unknown"}
        if resource.kind == "Node":
            return [{"metadata": {"name": name}, "status": condition(ready)} for name, ready in rows.items()]
        assert labels == "kubevirt.io=virt-node"
        metadata = {"labels": {GENERATION: "1"}}
        return [
            {"metadata": metadata, "spec": {"nodeName": name}, "status": condition(ready)}
            for name, ready in rows.items()
        ]


def test_a_daemon_set_serves_when_it_does_on_all_nodes_that_are_ready() -> None:
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "virt-node", "namespace": "kubevirt"},
    }
    params = {"definitions": [daemon_set], "state": "present", "labels": {}, "only_with_labels": {}}
    result = run({**params, "wait": True, "wait_timeout": 5}, TwoNodes(), check_mode=False, diff=False)
    assert result["not_ready_nodes"] == ["b"]
