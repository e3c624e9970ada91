# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A quantity written as a fractional number is stored as upstream stores it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Settings, review
from tests.controlplane.api import golden

SETTINGS = Settings(serves_data_volumes=True)
WRITTEN = {"requests": {"cpu": 2.2, "memory": 2222222.2}, "limits": {"cpu": 2.5, "memory": "64Mi"}}
SPELT = {"requests": {"cpu": "2.2", "memory": "2222222.2"}, "limits": {"cpu": "2.5", "memory": "64Mi"}}


def a_machine(resources: dict[str, Any]) -> dict[str, Any]:
    spec = {"domain": {"devices": {}, "resources": resources}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"runStrategy": "Halted", "template": {"spec": spec}},
    }


def resources(obj: dict[str, Any]) -> Any:
    return obj["spec"]["template"]["spec"]["domain"]["resources"]


def test_fractional_quantities_keep_their_value() -> None:
    written = a_machine(WRITTEN)
    before = copy.deepcopy(written)
    verdict = review(Request("CREATE", "VirtualMachine", "somebody", "u-1", written), SETTINGS)
    assert verdict.problems == ()
    assert verdict.patched is not None
    assert resources(verdict.patched) == SPELT
    assert written == before


def test_normalizing_twice_changes_nothing() -> None:
    created = review(Request("CREATE", "VirtualMachine", "somebody", "u-1", a_machine(WRITTEN)), SETTINGS).patched
    assert created is not None
    again = copy.deepcopy(created)
    again["spec"]["template"]["spec"]["domain"]["resources"] = WRITTEN
    verdict = review(Request("UPDATE", "VirtualMachine", "somebody", "u-2", again, created), SETTINGS)
    assert verdict.problems == ()
    assert verdict.patched == created


@pytest.mark.parametrize("number", [1.5, -1.5, 1e300])
def test_a_number_that_is_no_quantity_is_still_refused(number: float) -> None:
    """Other numbers (a port, a count) stay, and validation still judges each quantity."""
    bad = a_machine({"requests": {"memory": -1.5}})
    bad["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = number
    verdict = review(Request("CREATE", "VirtualMachine", "somebody", "u-1", bad), SETTINGS)
    assert {problem.path.rsplit(".", 1)[-1] for problem in verdict.problems} >= {"terminationGracePeriodSeconds"}
    assert verdict.patched is None


def test_the_template_of_a_replica_set_is_normalized_too() -> None:
    rs = golden.load("vmi-replicaset-cirros")
    rs["spec"]["template"]["spec"]["domain"]["resources"] = {"requests": {"memory": 67108864.5}}
    verdict = review(Request("CREATE", rs["kind"], "somebody", "u-1", rs), SETTINGS)
    assert verdict.problems == ()
    assert verdict.patched is not None
    assert resources(verdict.patched) == {"requests": {"memory": "67108864.5"}}


def test_a_kind_without_patches_is_refused_with_the_spelling_to_use() -> None:
    kubevirt = golden.load("kubevirt")
    kubevirt["spec"]["configuration"]["containerDiskLimit"] = 1073741824.5
    verdict = review(Request("CREATE", kubevirt["kind"], "somebody", "u-1", kubevirt), SETTINGS)
    assert [problem.path for problem in verdict.problems] == ["spec.configuration.containerDiskLimit"]
    assert "must be written as a string" in verdict.problems[0].message
