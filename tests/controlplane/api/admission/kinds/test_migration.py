# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission of a migration: validation, defaults at creation, and the fields that are immutable."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api import names

from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from controlplane.api.vmi_label import vmi_label_value
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import assert_refused, each, row

GOOD = golden.load("vmi-migration")
SETTINGS = Settings()
CONTROLLER = f"system:serviceaccount:{SETTINGS.namespace}:{names.CONTROLLER_ACCOUNT}"
LONG = "a" * 253
SELECTOR = "spec/addedNodeSelector"
SENDS = {"migrationID": "a", "connectURL": "b:1"}
LABEL = f"metadata.labels[{names.VMI_NAME}]"


def judge(obj: dict[str, Any], old: dict[str, Any] | None = None, user: str = "jane") -> Verdict:
    operation = "CREATE" if old is None else "UPDATE"
    return review(Request(operation=operation, kind=GOOD["kind"], user=user, uid="1", obj=obj, old=old), SETTINGS)


def made(**changes: Any) -> dict[str, Any]:
    """Return a migration as it is stored."""
    given = GOOD
    for path, value in changes.items():
        given = golden.changed(given, path, value)
    stored = judge(given).patched
    assert stored is not None
    return stored


def without(stored: dict[str, Any], *what: str) -> dict[str, Any]:
    return {**stored, "metadata": {key: value for key, value in stored["metadata"].items() if key not in what}}


MALFORMED = [
    row("no VMI", "spec/vmiName", ..., "vmiName is missing"),
    row("an empty name", "spec/vmiName", "", "vmiName is missing"),
    row("a malformed name", "spec/vmiName", "../web", "is no name"),
    row("a name too long", "spec/vmiName", "a" * 254, "at most 253"),
    row("no spec", "spec", ..., "must be an object"),
    row("a system priority", "spec/priority", "system-critical", "only virt-controller is allowed to set"),
    row("an unknown priority", "spec/priority", "mine", "is not supported"),
    row("sendTo", "spec/sendTo", SENDS, "known to KubeVirt, not built in this version; remove it"),
    row("misspelt", "spec/vmName", "web", "did you mean vmiName"),
    row("malformed label key", SELECTOR, {"a b": "c"}, "is not a label key", at="spec.addedNodeSelector[a b]"),
    row("malformed label value", SELECTOR, {"a": "b c"}, "is not a label value", at="spec.addedNodeSelector[a]"),
]


@each(MALFORMED)
def test_a_malformed_migration_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words, GOOD)


def test_a_new_migration_gets_the_label_of_its_instance_and_our_finalizer() -> None:
    metadata = made()["metadata"]

    assert metadata["labels"] == {names.VMI_NAME: "web"}
    assert metadata["finalizers"] == [names.MIGRATION_FINALIZER]


def test_existing_labels_and_finalizers_stay() -> None:
    labels, finalizers = {"app": "x", names.VMI_NAME: "other"}, ["example.com/mine"]
    metadata = made(**{"metadata/labels": labels, "metadata/finalizers": finalizers})["metadata"]

    assert metadata["labels"] == {"app": "x", names.VMI_NAME: "web"}, "by the instance that it names, and no other"
    assert metadata["finalizers"] == [*finalizers, names.MIGRATION_FINALIZER]


def test_the_label_for_a_long_instance_name_is_valid() -> None:
    """Upstream uses the name itself: an instance with such a name cannot be migrated there."""
    (label,) = made(**{"spec/vmiName": LONG})["metadata"]["labels"].values()

    assert label == vmi_label_value(LONG)
    assert len(label) <= 63


def test_only_virt_controller_sets_the_priority() -> None:
    critical = golden.changed(GOOD, "spec/priority", "system-critical")

    assert judge(critical, user=CONTROLLER) == Verdict()
    for user in ("jane", "system:serviceaccount:tenant:kubevirt-controller"):
        assert not judge(critical, user=user).allowed


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec/vmiName", "other", "spec.vmiName"),
        ("spec/addedNodeSelector", {}, "spec.addedNodeSelector"),
        ("spec/priority", "system-critical", "spec.priority"),
        ("spec/sendTo", SENDS, "spec.sendTo"),
    ],
)
def test_the_spec_is_immutable(path: str, value: Any, field: str) -> None:
    stored = made()
    (problem,) = judge(golden.changed(stored, path, value), stored).problems

    assert (problem.path, problem.reason) == (field, "FieldValueForbidden")
    assert "delete this migration, which cancels it" in problem.message


def test_the_instance_label_is_immutable() -> None:
    stored = made()
    other = golden.changed(stored, "metadata/labels", {names.VMI_NAME: "other"})

    assert [problem.path for problem in judge(other, stored).problems] == [LABEL]
    assert judge(golden.changed(stored, "metadata/labels", {names.VMI_NAME: "web", "app": "x"}), stored).allowed


@pytest.mark.parametrize("what", ["labels", "finalizers"])
def test_a_replace_keeps_the_finalizer_and_the_label(what: str) -> None:
    stored = made()

    assert judge(without(stored, what), stored).patched == stored


def test_an_update_adds_a_missing_label() -> None:
    """A virt-api of another version, or no webhook at all, admitted this migration."""
    stored = made()
    bare = without(stored, "labels")

    assert judge(stored, bare).allowed
    assert judge(bare, bare).patched == stored


@pytest.mark.parametrize("status", [{}, {"phase": "Succeeded"}, None], ids=repr)
def test_a_typed_client_may_write_a_migration_without_status_back(status: Any) -> None:
    """Go writes `"status": {}`. The API server takes no status from such a write."""
    stored = made()
    labelled = golden.changed({**stored, "status": status}, "metadata/labels", {names.VMI_NAME: "web", "app": "x"})

    assert judge(labelled, stored) == Verdict()
