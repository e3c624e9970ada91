# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which objects the role made, which of them are obsolete, and which only have the same name."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import owned_objects

OURS = {"app.kubernetes.io/managed-by": "virtops.kubevirt", "app.kubernetes.io/part-of": "kubevirt"}
APPLIED = [{"manager": "virtops.kubevirt", "operation": "Apply"}, {"manager": "virt-controller", "operation": "Update"}]


def an_object(kind: str, name: str, namespace: str | None = None, **metadata: Any) -> dict[str, Any]:
    """Return an object of the role, with changes to its metadata."""
    place = {"namespace": namespace} if namespace else {}
    own = {"name": name, "labels": OURS, "managedFields": APPLIED, **place, **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": own}


def titles(objects: list[dict[str, Any]]) -> list[str]:
    return [owned_objects.title(item) for item in objects]


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(None, id="none"),
        pytest.param({"team": "shop"}, id="others"),
        pytest.param({**OURS, "app.kubernetes.io/part-of": "shop"}, id="one has another value"),
        pytest.param({"app.kubernetes.io/managed-by": "virtops.kubevirt"}, id="one is missing"),
    ],
)
def test_an_object_without_all_marks_was_not_made_by_the_role(labels: dict[str, str] | None) -> None:
    """A namespace that was handed over and not yet adopted by a run has only one of them."""
    assert owned_objects.owned([an_object("Namespace", "production", labels=labels)], "production") == []


def test_objects_of_an_older_version_belong_to_the_role() -> None:
    old = an_object("ClusterRole", "old", labels={**OURS, "app.kubernetes.io/version": "0.0.1"})

    assert owned_objects.owned([old], "kubevirt") == [old]


def test_objects_in_a_foreign_namespace_were_not_made_by_the_role() -> None:
    places = ("kubevirt", "kube-system", "shop")
    objects = [an_object("RoleBinding", "reader", place) for place in places]

    assert titles(owned_objects.owned(objects, "kubevirt")) == [
        "RoleBinding kube-system/reader",
        "RoleBinding kubevirt/reader",
    ]


def test_deletion_order_is_configuration_webhooks_components_rbac_definitions() -> None:
    objects = [
        an_object("CustomResourceDefinition", "kubevirts.kubevirt.io"),
        an_object("Namespace", "kubevirt"),
        an_object("ClusterRole", "kubevirt-controller"),
        an_object("ValidatingAdmissionPolicy", "launcher-pods"),
        an_object("Deployment", "virt-api", "kubevirt"),
        an_object("APIService", "v1.subresources.kubevirt.io"),
        an_object("ValidatingWebhookConfiguration", "virt-api-validator"),
        an_object("KubeVirt", "kubevirt", "kubevirt"),
    ]

    assert [item["kind"] for item in owned_objects.owned(objects, "kubevirt")] == [
        item["kind"] for item in reversed(objects)
    ]


POLICY = an_object("NetworkPolicy", "virt-api", "kubevirt")
ROLE = an_object("ClusterRole", "kubevirt-controller")


def test_an_object_that_is_no_longer_wanted_is_obsolete() -> None:
    assert owned_objects.superfluous([POLICY, ROLE], [ROLE]) == [POLICY]


def test_an_object_in_another_api_version_is_still_wanted() -> None:
    assert owned_objects.superfluous([ROLE], [{**ROLE, "apiVersion": "rbac.authorization.k8s.io/v2"}]) == []


def test_without_wanted_objects_nothing_is_obsolete() -> None:
    assert owned_objects.superfluous([POLICY, ROLE], []) == []


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Namespace", "Secret", "KubeVirt"])
def test_kinds_with_data_are_never_obsolete(kind: str) -> None:
    assert owned_objects.superfluous([an_object(kind, "old", "kubevirt")], [ROLE]) == []


@pytest.mark.parametrize("name", ["kubevirt-migration-source-certs", "kubevirt-migration-target-certs"])
def test_a_secret_of_a_key_pair_that_is_no_longer_issued_is_obsolete(name: str) -> None:
    secret = an_object("Secret", name, "kubevirt")
    assert owned_objects.superfluous([secret], [ROLE]) == [secret]


def test_the_name_of_a_former_secret_makes_no_other_kind_obsolete() -> None:
    assert owned_objects.superfluous([an_object("Namespace", "kubevirt-migration-source-certs")], [ROLE]) == []


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(None, id="nobody's"),
        pytest.param([{"manager": "kubectl-client-side-apply", "operation": "Update"}], id="kubectl's"),
        pytest.param([{"manager": "virtops.kubevirt", "operation": "Update"}], id="a patch of ours"),
    ],
)
def test_a_copy_by_a_user_with_our_labels_is_not_obsolete(fields: Any) -> None:
    assert owned_objects.superfluous([an_object("ClusterRole", "my-copy", managedFields=fields)], [ROLE]) == []


def test_a_foreign_object_with_a_wanted_name_is_named() -> None:
    foreign = an_object("Namespace", "production", labels={"team": "shop"})
    inside = an_object("Secret", "kubevirt-ca", "production", labels=None)

    assert owned_objects.namesakes([foreign, inside], [], [foreign, inside]) == [
        "Namespace production",
        "Secret production/kubevirt-ca",
    ]


def test_unwanted_objects_and_those_in_our_namespace_are_not_named() -> None:
    ours = an_object("Namespace", "kubevirt")
    inside = an_object("Secret", "kubevirt-ca", "kubevirt", labels=None)
    other = an_object("ClusterRole", "other", labels=None)

    assert owned_objects.namesakes([ours, inside, other], [ours], [ours, inside]) == []
