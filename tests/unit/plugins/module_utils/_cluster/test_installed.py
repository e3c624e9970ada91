# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who installed the control plane of a cluster."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.installed import assess, identity
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api import names


def definition(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "kubevirts.kubevirt.io", "labels": labels}}


OURS = {"app.kubernetes.io/managed-by": "virtops.kubevirt", "app.kubernetes.io/version": "0.1.0"}
UPSTREAM = {"app.kubernetes.io/managed-by": "virt-operator"}


@pytest.mark.parametrize(
    ("found", "owner", "version"),
    [
        pytest.param(None, "none", None, id="nothing"),
        pytest.param(definition(**OURS), "ours", "0.1.0", id="ours"),
        pytest.param(definition(**UPSTREAM), "other", None, id="upstream's"),
        pytest.param(definition(), "other", None, id="somebody's"),
    ],
)
def test_owner_and_version(found: dict[str, Any] | None, owner: str, version: str | None) -> None:
    installed = assess(found)

    assert (installed.owner, installed.version) == (owner, version)


def deployment(version: str) -> dict[str, Any]:
    labels = {**OURS, "app.kubernetes.io/version": version}
    return {"metadata": {"name": "virt-api", "namespace": "virt", "labels": labels}}


def test_the_version_is_that_of_the_components_if_any() -> None:
    """After a rollback the CRDs stay newer than the components."""
    installed = assess(definition(**{**OURS, "app.kubernetes.io/version": "0.2.0"}), deployments=[deployment("0.1.0")])

    assert (installed.version, installed.definitions_version, installed.namespace) == ("0.1.0", "0.2.0", "virt")


def test_an_interrupted_upgrade_counts_as_the_newer_version() -> None:
    objects = [deployment("0.10.0"), deployment("0.9.0")]

    assert assess(definition(**OURS), deployments=objects).version == "0.10.0"


def test_definitions_of_another_installer_have_no_version() -> None:
    installed = assess(definition(**UPSTREAM), deployments=[deployment("0.1.0")])

    assert (installed.version, installed.definitions_version) == (None, None)


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        pytest.param(OURS, "ours", id="ours"),
        pytest.param({"app.kubernetes.io/managed-by": "Helm"}, "other", id="another installer's"),
        pytest.param({"team": "shop"}, "other", id="somebody's"),
        pytest.param(None, "other", id="somebody's, without labels"),
    ],
)
def test_the_owner_of_a_namespace(labels: dict[str, str] | None, owner: str) -> None:
    """Even without an installation, the namespace may exist and belong to somebody."""
    assert assess(None, namespace={"metadata": {"name": "production", "labels": labels}}).namespace_owner == owner


def test_a_missing_namespace_has_no_owner() -> None:
    assert assess(definition(**OURS)).namespace_owner == "none"


def test_evidence_names_the_installer() -> None:
    assert assess(definition(**UPSTREAM)).evidence == (
        "CustomResourceDefinition kubevirts.kubevirt.io, managed by virt-operator"
    )


def machine(kind: str, name: str, owner: str | None = None) -> dict[str, Any]:
    owners = [{"kind": owner, "name": name}] if owner else []
    metadata = {"namespace": "shop", "name": name, "ownerReferences": owners, "uid": "u"}
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": metadata, "spec": {}}


def test_a_vmi_of_a_vm_is_not_a_workload_of_its_own() -> None:
    workloads = [
        machine("VirtualMachine", "web"),
        machine("VirtualMachineInstance", "web", owner="VirtualMachine"),
        machine("VirtualMachineInstance", "loose"),
    ]

    assert assess(definition(**OURS), workloads=workloads).workloads == ["shop/loose", "shop/web"]


def test_a_replica_set_and_its_instances_are_waited_for() -> None:
    """The set is gone right after its deletion; its machines still shut down."""
    workloads = [
        machine("VirtualMachineInstanceReplicaSet", "set"),
        machine("VirtualMachineInstance", "one", owner="VirtualMachineInstanceReplicaSet"),
    ]

    assert assess(definition(**OURS), workloads=workloads).workloads == ["shop/one", "shop/set"]


def test_a_migration_is_deleted_with_the_machines_and_is_none() -> None:
    workloads = [machine("VirtualMachineInstanceMigration", "move"), machine("VirtualMachine", "web")]

    installed = assess(definition(**OURS), workloads=workloads)

    assert installed.workloads == ["shop/web"]
    assert [item["metadata"]["name"] for item in installed.workload_objects] == ["move", "web"]


def test_workloads_are_returned_as_objects_to_delete() -> None:
    assert assess(definition(**OURS), workloads=[machine("VirtualMachine", "web")]).workload_objects == [
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web", "namespace": "shop"}}
    ]


def test_only_our_keys_are_removed_from_a_node() -> None:
    labels = {"kubevirt.io/schedulable": "true", "cpu-model.node.kubevirt.io/x": "true", "evil.com/kubevirt.io-x": "1"}
    node = {"metadata": {"name": "n1", "labels": labels, "annotations": {"kubevirt.io/heartbeat": "t"}}}

    assert assess(definition(**OURS), nodes=[node, {"metadata": {"name": "n2"}}]).node_patches == [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n1",
                "labels": {"cpu-model.node.kubevirt.io/x": None, "kubevirt.io/schedulable": None},
                "annotations": {"kubevirt.io/heartbeat": None},
            },
        }
    ]


def keys_of_nodes() -> list[str]:
    """Return every key that `names` documents as "On Nodes"."""
    lines = pairwise(ast.parse(Path(names.__file__).read_text()).body)
    return [
        line.value.value
        for line, text in lines
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
        if isinstance(text, ast.Expr) and str(getattr(text.value, "value", "")).startswith("On Nodes: ")
    ]


@pytest.mark.parametrize("key", [*keys_of_nodes(), "kubevirt.io/heartbeat"])
@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_every_documented_node_key_is_removed(part: str, key: str) -> None:
    """Also with a user's value: no component remains that would read it."""
    node = {"metadata": {"name": "n1", part: {key: "maintenance"}}}

    assert [item["metadata"][part] for item in assess(definition(**OURS), nodes=[node]).node_patches] == [{key: None}]


def test_node_keys_are_documented() -> None:
    assert {names.SCHEDULABLE, names.QUARANTINED} <= set(keys_of_nodes())


def test_an_identity_is_enough_to_delete_an_object() -> None:
    metadata = {"namespace": "kubevirt", "name": "virt-api", "uid": "1"}
    policy = {"apiVersion": "v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": {}}
    assert identity(policy) == {
        "apiVersion": "v1",
        "kind": "NetworkPolicy",
        "metadata": {"namespace": "kubevirt", "name": "virt-api"},
    }
    everywhere = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    assert identity(everywhere) == everywhere


@pytest.mark.parametrize(
    ("metadata", "is_going"),
    [(None, False), ({"name": "virt"}, False), ({"name": "virt", "deletionTimestamp": "2026-01-01T00:00:00Z"}, True)],
    ids=["none", "there", "going"],
)
def test_whether_a_namespace_is_being_deleted(metadata: dict[str, Any] | None, is_going: bool) -> None:
    namespace = None if metadata is None else {"metadata": metadata}

    assert assess(None, namespace=namespace).namespace_terminating is is_going
