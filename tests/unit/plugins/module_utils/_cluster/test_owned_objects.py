# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which objects the role made, which of them nobody wants any more, and which only have the name of one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import owned_objects

OURS = {"app.kubernetes.io/managed-by": "virtops.kubevirt", "app.kubernetes.io/part-of": "kubevirt"}
APPLIED = [{"manager": "virtops.kubevirt", "operation": "Apply"}, {"manager": "virt-controller", "operation": "Update"}]


def an_object(kind: str, name: str, namespace: str | None = None, **metadata: Any) -> dict[str, Any]:
    """Return an object that we made, but for what is said of its metadata."""
    place = {"namespace": namespace} if namespace else {}
    known = {"name": name, "labels": OURS, "managedFields": APPLIED, **place, **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": known}


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
def test_what_does_not_carry_all_marks_was_not_made_by_the_role(labels: dict[str, str] | None) -> None:
    """A namespace that was handed over and that no run has taken yet carries one of them."""
    assert owned_objects.owned([an_object("Namespace", "production", labels=labels)], "production") == []


def test_an_older_versions_objects_are_the_roles() -> None:
    old = an_object("ClusterRole", "old", labels={**OURS, "app.kubernetes.io/version": "0.0.1"})

    assert owned_objects.owned([old], "kubevirt") == [old]


def test_what_is_in_somebody_elses_namespace_was_not_made_by_the_role() -> None:
    places = ("kubevirt", "kube-system", "shop")
    found = [an_object("RoleBinding", "reader", place) for place in places]

    assert titles(owned_objects.owned(found, "kubevirt")) == [
        "RoleBinding kube-system/reader",
        "RoleBinding kubevirt/reader",
    ]


def test_configuration_goes_first_then_webhooks_then_components_then_what_they_may_and_definitions_last() -> None:
    found = [
        an_object("CustomResourceDefinition", "kubevirts.kubevirt.io"),
        an_object("Namespace", "kubevirt"),
        an_object("ClusterRole", "kubevirt-controller"),
        an_object("ValidatingAdmissionPolicy", "launcher-pods"),
        an_object("Deployment", "virt-api", "kubevirt"),
        an_object("APIService", "v1.subresources.kubevirt.io"),
        an_object("ValidatingWebhookConfiguration", "virt-api-validator"),
        an_object("KubeVirt", "kubevirt", "kubevirt"),
    ]

    assert [item["kind"] for item in owned_objects.owned(found, "kubevirt")] == [
        item["kind"] for item in reversed(found)
    ]


POLICY = an_object("NetworkPolicy", "virt-api", "kubevirt")
ROLE = an_object("ClusterRole", "kubevirt-controller")


def test_what_is_not_wanted_any_more_is_superfluous() -> None:
    assert owned_objects.superfluous([POLICY, ROLE], [ROLE]) == [POLICY]


def test_what_came_by_another_version_of_its_api_is_still_wanted() -> None:
    assert owned_objects.superfluous([ROLE], [{**ROLE, "apiVersion": "rbac.authorization.k8s.io/v2"}]) == []


def test_where_nothing_is_said_to_be_wanted_nothing_is_superfluous() -> None:
    assert owned_objects.superfluous([POLICY, ROLE], []) == []


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Namespace", "Secret", "KubeVirt"])
def test_what_holds_data_is_never_superfluous(kind: str) -> None:
    assert owned_objects.superfluous([an_object(kind, "old", "kubevirt")], [ROLE]) == []


@pytest.mark.parametrize("name", ["kubevirt-migration-source-certs", "kubevirt-migration-target-certs"])
def test_a_secret_whose_pair_is_no_longer_issued_is_superfluous(name: str) -> None:
    secret = an_object("Secret", name, "kubevirt")
    assert owned_objects.superfluous([secret], [ROLE]) == [secret]


def test_a_former_secrets_name_makes_nothing_else_superfluous() -> None:
    assert owned_objects.superfluous([an_object("Namespace", "kubevirt-migration-source-certs")], [ROLE]) == []


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(None, id="nobody's"),
        pytest.param([{"manager": "kubectl-client-side-apply", "operation": "Update"}], id="kubectl's"),
        pytest.param([{"manager": "virtops.kubevirt", "operation": "Update"}], id="a patch of ours"),
    ],
)
def test_a_copy_that_somebody_made_with_our_labels_is_not_superfluous(fields: Any) -> None:
    assert owned_objects.superfluous([an_object("ClusterRole", "my-copy", managedFields=fields)], [ROLE]) == []


def test_somebody_elses_object_of_a_wanted_name_is_named() -> None:
    foreign = an_object("Namespace", "production", labels={"team": "shop"})
    inside = an_object("Secret", "kubevirt-ca", "production", labels=None)

    assert owned_objects.namesakes([foreign, inside], [], [foreign, inside]) == [
        "Namespace production",
        "Secret production/kubevirt-ca",
    ]


def test_what_is_not_wanted_and_what_goes_with_our_namespace_is_not_named() -> None:
    ours = an_object("Namespace", "kubevirt")
    inside = an_object("Secret", "kubevirt-ca", "kubevirt", labels=None)
    other = an_object("ClusterRole", "other", labels=None)

    assert owned_objects.namesakes([ours, inside, other], [ours], [ours, inside]) == []
