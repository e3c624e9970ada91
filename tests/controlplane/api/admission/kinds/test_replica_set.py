# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a replica set."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from controlplane.api.registry import KINDS
from controlplane.virt_api.http.routes import webhook_paths
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import assert_refused, each, row

SETTINGS = Settings()
GOOD = golden.load("vmi-replicaset-cirros")
LABEL = "kubevirt.io/vmReplicaSet"
REQUIREMENT = {"key": LABEL, "operator": "Exists"}
LABELS = "spec/template/metadata/labels"
ANNOTATIONS = "spec/template/metadata/annotations"
EXPRESSIONS = "spec/selector/matchExpressions"


def labelled(**more: str) -> dict[str, str]:
    """Return the labels of the template and some more."""
    labels: dict[str, str] = GOOD["spec"]["template"]["metadata"]["labels"]
    return labels | more


def requirement(**how: Any) -> list[dict[str, Any]]:
    """Return one selector requirement."""
    return [REQUIREMENT | how]


MALFORMED = [
    row("negative replicas", "spec/replicas", -1, "from 0 to 10000"),
    row("too many replicas", "spec/replicas", 10001, "from 0 to 10000"),
    row("replicas as text", "spec/replicas", "3", "must be a whole number"),
    row("paused as text", "spec/paused", "yes", "true or false"),
    row("no selector", "spec/selector", ..., "is required"),
    row("a selector of everything", "spec/selector", {}, "would select everything"),
    row("no labels", "spec/selector", {"matchLabels": {}}, "would select everything"),
    row("no label key", "spec/selector/matchLabels", {"a b": "c"}, "label key", at="spec.selector.matchLabels[a b]"),
    row(
        "a label of another set",
        "spec/selector/matchLabels",
        {LABEL: "other"},
        "does not match labels",
        at="spec.selector",
    ),
    row("unknown operator", EXPRESSIONS, requirement(operator="Like"), "In, NotIn, Exists", at="operator"),
    row("In without values", EXPRESSIONS, requirement(operator="In"), "at least one value", at="values"),
    row("Exists with values", EXPRESSIONS, requirement(values=["a"]), "takes no values", at="values"),
    row("malformed label key", EXPRESSIONS, requirement(key="a b"), "label key", at="matchExpressions[0][a b]"),
    row("no operator", EXPRESSIONS, [{"key": LABEL}], "is required", at="operator"),
    row(
        "malformed label value",
        EXPRESSIONS,
        requirement(operator="In", values=["a\nb"]),
        "label value",
        at=f"Expressions[0][{LABEL}]",
    ),
    row("no template", "spec/template", ..., "is required"),
    row("a template without labels", "spec/template/metadata", ..., "does not match labels", at="spec.selector"),
    row("a template that is not selected", LABELS, {LABEL: "x"}, "does not match labels", at="spec.selector"),
    row("reserved label", LABELS, labelled(**{"kubevirt.io/nodeName": "n"}), "reserved", at="io/nodeName]"),
    row("reserved annotation", ANNOTATIONS, {"kubevirt.io/vm-generation": "1"}, "reserved", at="io/vm-generation]"),
    row("a name that no instance can have", "spec/template/metadata/name", "My VM", "begins the names of instances"),
    row("a prefix that no name can have", "spec/template/metadata/generateName", "web_", "begins the names of inst"),
    row("malformed VMI spec", "spec/template/spec/domain/memory", {"guest": "lots"}, "quantity", at="memory.guest"),
    row("misspelt replicas", "spec/replica", 3, "did you mean replicas"),
]


def judge(obj: dict[str, Any], old: dict[str, Any] | None = None) -> Verdict:
    operation = "CREATE" if old is None else "UPDATE"
    return review(Request(operation=operation, kind=GOOD["kind"], user="u", uid="1", obj=obj, old=old), SETTINGS)


@each(MALFORMED)
def test_a_malformed_replica_set_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words, GOOD)


@pytest.mark.parametrize("replicas", [0, 1, 10_000, ...])
def test_up_to_ten_thousand_replicas_are_accepted(replicas: Any) -> None:
    assert judge(golden.changed(GOOD, "spec/replicas", replicas)).allowed


def test_the_selector_may_change_with_the_template() -> None:
    """As upstream: the set orphans the instances that no longer match."""
    labels = {"app": "web"}
    changed = golden.changed(GOOD, "spec/selector/matchLabels", labels)

    assert judge(golden.changed(changed, "spec/template/metadata/labels", labels), GOOD).allowed
    assert not judge(changed, GOOD).allowed


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [((250, 250, 250, 250), True), ((256, 256, 256, 233), False), ((256,) * 256, False)],
    ids=["a thousand", "one more", "as many as each list may have"],
)
def test_a_selector_has_at_most_a_thousand_values(sizes: tuple[int, ...], fits: bool) -> None:
    """The controller matches every instance of the namespace against them in each reconcile."""
    values = [f"v{number:03}" for number in range(256)]
    requirements = [{"key": LABEL, "operator": "NotIn", "values": values[:size]} for size in sizes]

    problems = judge(golden.changed(GOOD, "spec/selector/matchExpressions", requirements)).problems

    assert [problem.path for problem in problems] == ([] if fits else ["spec.selector.matchExpressions"])
    assert fits or f"{sum(sizes)} values, at most 1000" in problems[0].message


def test_a_template_without_labels_is_refused_even_if_the_selector_requires_none() -> None:
    """Only missing labels would tell its instances from those of other owners."""
    none = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    bare = golden.changed(golden.changed(GOOD, "spec/selector", none), "spec/template/metadata/labels", {})

    assert [problem.path for problem in judge(bare).problems] == ["spec.selector"]


def test_a_label_that_does_not_reach_the_pod_gets_a_warning() -> None:
    (warning,) = judge(GOOD).warnings

    assert warning.startswith(f"spec.template.metadata: not passed on to the launcher Pod: {LABEL}")


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
READ = {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
FILLED = {"name": "data", "dataVolume": {"name": "data"}}


@pytest.mark.parametrize(
    ("volume", "warning_text"),
    [
        (CLAIM, 'volumes[1].persistentVolumeClaim: claim "data": all replicas are to write to it'),
        (READ, 'volumes[1].persistentVolumeClaim: claim "data": instances on other nodes stay Pending unless'),
        (FILLED, 'volumes[1].dataVolume: claim "data": all replicas are to write to it'),
    ],
)
def test_a_claim_shared_by_several_instances_gets_a_warning(volume: dict[str, Any], warning_text: str) -> None:
    set_ = golden.changed(GOOD, "spec/template/spec/volumes", [*GOOD["spec"]["template"]["spec"]["volumes"], volume])

    def warnings(replicas: Any) -> list[str]:
        every = judge(golden.changed(set_, "spec/replicas", replicas)).warnings
        return [warning for warning in every if "claim" in warning]

    (warning,) = warnings(2)
    assert warning.startswith(f"spec.template.spec.{warning_text}")
    assert warnings(1) == warnings(0) == warnings(...) == warnings("2") == []


@pytest.mark.parametrize(
    ("shareable", "text"), [(True, "on other nodes stay Pending"), (False, "all replicas are to write to it")]
)
@pytest.mark.parametrize("volume", [CLAIM, FILLED], ids=["claim", "dataVolume"])
def test_a_shareable_disk_may_be_written_by_several_instances(
    volume: dict[str, Any], shareable: bool, text: str
) -> None:
    disk = {"name": volume["name"], "disk": {"bus": "virtio"}, "shareable": shareable}
    spec = GOOD["spec"]["template"]["spec"]
    set_ = golden.changed(GOOD, "spec/template/spec/volumes", [*spec["volumes"], volume])
    disks = [*spec["domain"]["devices"].get("disks", []), disk]
    set_ = golden.changed(set_, "spec/template/spec/domain/devices/disks", disks)
    warnings = judge(golden.changed(set_, "spec/replicas", 2)).warnings
    assert [text in warning for warning in warnings if "claim" in warning] == [True]


@pytest.mark.parametrize("volumes", [7, [7], [{"persistentVolumeClaim": 7}], ...])
def test_an_undecodable_replica_set_is_refused_without_warnings(volumes: Any) -> None:
    verdict = judge(golden.changed(golden.changed(GOOD, "spec/replicas", 2), "spec/template/spec/volumes", volumes))

    assert not verdict.allowed
    assert not [warning for warning in verdict.warnings if "claim" in warning]


def test_a_replica_set_has_no_defaults() -> None:
    """The mutating webhook receives it only for a better error: the schema would name no remedy."""
    assert webhook_paths(KINDS)["/virtualmachineinstancereplicasets-mutate"] == "mutate"
    assert judge(GOOD).patched is None
