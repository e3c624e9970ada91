# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a pool."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from tests.controlplane.api import golden

GOOD = golden.load("pool-cirros")
SETTINGS = Settings(serves_data_volumes=False)
INSIDE = "spec/virtualMachineTemplate/spec"


def judge(obj: dict[str, Any], old: dict[str, Any] | None = None) -> Verdict:
    operation = "CREATE" if old is None else "UPDATE"
    return review(Request(operation=operation, kind=GOOD["kind"], user="u", uid="1", obj=obj, old=old), SETTINGS)


BOTH = {"unmanaged": {}, "proactive": {}}
SELECTORS = {"proactive": {"selectionPolicy": {"selectors": {"labelSelector": {"matchLabels": {"!": "x"}}}}}}
NUMBERS = [{"key": "zone", "operator": "Gt", "values": ["many"]}]
NODES = {"proactive": {"selectionPolicy": {"selectors": {"nodeSelectorRequirementMatcher": NUMBERS}}}}
AT = "spec.virtualMachineTemplate"


@pytest.mark.parametrize(
    ("path", "value", "reported", "words"),
    [
        ("spec/selector", {}, "spec.selector", "select everything"),
        ("spec/selector/matchLabels", {"other": "x"}, "spec.selector", "selector does not match labels"),
        ("spec/virtualMachineTemplate", ..., "spec.virtualMachineTemplate", "is required"),
        ("spec/replicas", -1, "spec.replicas", "out of range"),
        ("spec/maxUnavailable", 0, "spec.maxUnavailable", "above 0"),
        ("spec/maxUnavailable", "101%", "spec.maxUnavailable", "percentage"),
        ("spec/maxUnavailable", "50", "spec.maxUnavailable", "percentage"),
        ("spec/maxUnavailable", True, "spec.maxUnavailable", "above 0"),
        ("spec/scaleInStrategy", BOTH, "spec.scaleInStrategy", "exclude each other"),
        ("spec/updateStrategy", BOTH, "spec.updateStrategy", "exclude each other"),
        ("spec/scaleInStrategy", SELECTORS, "spec.scaleInStrategy.proactive.selectionPolicy", "label key"),
        ("spec/updateStrategy", NODES, "spec.updateStrategy.proactive.selectionPolicy", "whole number"),
        ("spec/scaleInStrategy", {"proactive": {"statePreservation": "Offline"}}, "spec.scaleIn", "not built"),
        ("spec/autohealing", {"startUpFailureThreshold": 3}, "spec.autohealing", "not built"),
        (f"{INSIDE}/runStrategy", ..., f"{AT}.spec.runStrategy", "is required"),
        (f"{INSIDE}/running", True, f"{AT}.spec.running", "exclude each other"),
        (f"{INSIDE}/template/spec/domain/memory/guest", "none", f"{AT}.spec.template.spec.domain", "quantity"),
        (f"{INSIDE}/template/spec/domain/memory", {"guest": "8Ei"}, f"{AT}.spec.template.spec", ""),
        (
            f"{INSIDE}/dataVolumeTemplates",
            [{"metadata": {"name": "d" * 250}, "spec": {}}],
            f"{AT}.spec.dataVolumeTemplates[0].metadata.name",
            "ends with its number",
        ),
        (f"{INSIDE}/dataVolumeTemplates", [{"metadata": {"name": "x"}, "spec": {}}], f"{AT}.spec.dataVolume", ""),
        ("spec/virtualMachineTemplate/metadata/labels/!", "x", f"{AT}.metadata.labels", "label key"),
        ("metadata/name", "p" * 250, "metadata.name", "named after it"),
    ],
)
def test_a_malformed_pool_is_refused_with_field_and_remedy(path: str, value: Any, reported: str, words: str) -> None:
    problems = [str(problem) for problem in judge(golden.changed(GOOD, path, value)).problems]
    assert [problem for problem in problems if problem.startswith(reported) and words in problem], problems


@pytest.mark.parametrize("value", [1, "1%", "100%", 2**31 - 1])
def test_max_unavailable_is_a_number_or_a_percentage(value: Any) -> None:
    assert judge(golden.changed(GOOD, "spec/maxUnavailable", value)).allowed


def test_the_selector_is_immutable() -> None:
    old = golden.changed(GOOD, "spec/virtualMachineTemplate/metadata/labels/app", "web")
    problems = judge(golden.changed(old, "spec/selector/matchLabels", {"app": "web"}), old).problems
    assert [problem.path for problem in problems] == ["spec.selector"]
    assert "is immutable after creation" in problems[0].message
    same = golden.changed(old, "spec/selector/matchExpressions", None)
    assert judge(golden.changed(same, "spec/replicas", 7), old).allowed, "as Go writes it"
    assert judge(golden.changed(old, "spec/replicas", 7), old).allowed


def test_a_pool_with_data_volumes_needs_cdi() -> None:
    volumes = [{"name": "containerdisk", "dataVolume": {"name": "disk"}}]
    problems = judge(golden.changed(GOOD, f"{INSIDE}/template/spec/volumes", volumes)).problems
    assert [problem.path for problem in problems] == [f"{AT}.spec.template.spec.volumes[0].dataVolume"]


def test_a_claim_shared_by_all_members_gets_a_warning() -> None:
    volumes = [{"name": "containerdisk", "persistentVolumeClaim": {"claimName": "disk"}}]
    (warning,) = judge(golden.changed(GOOD, f"{INSIDE}/template/spec/volumes", volumes)).warnings
    assert warning.startswith(f"{AT}.spec.template.spec.volumes[0]")


def test_a_typed_client_that_scales_a_pool_does_not_change_its_template() -> None:
    """Another template restarts all machines."""
    typed = golden.changed(GOOD, f"{INSIDE}/template/metadata", {"creationTimestamp": None})
    typed = golden.changed(typed, f"{INSIDE}/template/spec/accessCredentials", [])
    verdict = judge(golden.changed(typed, "spec/replicas", 7), golden.changed(GOOD, f"{INSIDE}/template/metadata", {}))

    template = golden.changed(GOOD, f"{INSIDE}/template/metadata", {})["spec"]["virtualMachineTemplate"]
    assert verdict.patched is not None
    assert (verdict.patched["spec"]["replicas"], verdict.patched["spec"]["virtualMachineTemplate"]) == (7, template)


def test_a_pool_has_no_defaults() -> None:
    assert judge(GOOD).patched is None
