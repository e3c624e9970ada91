# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of a migration policy, by upstream's rule, and the settings of it that reach the two nodes."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Settings, review
from controlplane.api.objects.decode import decode
from controlplane.api.objects.migration_policy import MigrationPolicy
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import MIGRATION_POLICY, NAMESPACE
from controlplane.virt_controller.migration.policy import choose, merge
from tests.controlplane.virt_controller.migration.stage import Stage

Labels = dict[str, str]
LABELS: Labels = {"app": "db", "tier": "gold"}
NAMESPACE_LABELS: Labels = {"env": "prod", "team": "a"}


def body(name: str, vmi: Labels | None = None, namespace: Labels | None = None, **spec: Any) -> dict[str, Any]:
    selectors = {"virtualMachineInstanceSelector": vmi or {}, "namespaceSelector": namespace or {}}
    meta = {"name": name}
    return {
        "apiVersion": "migrations.kubevirt.io/v1alpha1",
        "kind": "MigrationPolicy",
        "metadata": meta,
        "spec": {"selectors": selectors, **spec},
    }


def a_policy(*args: Any, **spec: Any) -> MigrationPolicy:
    return decode(body(*args, **spec), MigrationPolicy)


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        pytest.param([], None, id="none"),
        pytest.param([a_policy("all")], "all", id="no label: everybody's"),
        pytest.param([a_policy("a", {"app": "web"})], None, id="another value"),
        pytest.param([a_policy("a", {"zone": "1"})], None, id="a label that is not there"),
        pytest.param([a_policy("a", {"app": "db", "zone": "1"})], None, id="one of two is not there"),
        pytest.param([a_policy("a", {"app": "db"}, {"env": "test"})], None, id="the namespace is another"),
        pytest.param([a_policy("a"), a_policy("b", {"app": "db"})], "b", id="more labels"),
        pytest.param(
            [a_policy("a", {"app": "db"}), a_policy("b", {}, NAMESPACE_LABELS)], "b", id="more labels of the namespace"
        ),
        pytest.param(
            [a_policy("a", {}, {"env": "prod"}), a_policy("b", {"app": "db"})], "b", id="as many: the instance's first"
        ),
        pytest.param([a_policy("b", {"app": "db"}), a_policy("a", {"tier": "gold"})], "a", id="as many: by name"),
    ],
)
def test_the_most_specific_policy_is_chosen(policies: list[MigrationPolicy], chosen: str | None) -> None:
    policy = choose(policies, LABELS, NAMESPACE_LABELS)

    assert (policy.metadata.name if policy is not None else None) == chosen


def test_a_policy_overrides_only_the_settings_that_it_has() -> None:
    settings = MigrationConfiguration(bandwidth_per_migration="1Mi", allow_auto_converge=True, progress_timeout=7)
    policy = a_policy(
        "a",
        bandwidthPerMigration=0,
        allowAutoConverge=False,
        allowWorkloadDisruption=True,
        completionTimeoutPerGiB=0,
    )

    merged = merge(policy, settings)

    assert merged.allow_workload_disruption

    assert (merged.bandwidth_per_migration, merged.allow_auto_converge) == (0, False)
    assert (merged.completion_timeout_per_gib, merged.progress_timeout) == (0, 7)
    assert merge(a_policy("a"), settings) == settings == merge(None, settings)


async def test_the_hand_over_names_the_policy_and_its_settings() -> None:
    stage = Stage()
    stage.store.create(NAMESPACE, "", {"metadata": {"name": "default", "labels": {"env": "prod"}}})
    stage.store.create(MIGRATION_POLICY, "", body("other", {}, {"env": "test", "team": "b"}))
    stage.store.create(MIGRATION_POLICY, "", body("mine", {}, {"env": "prod"}, bandwidthPerMigration="64Mi"))
    stage.catch_up()

    await stage.until("PreparingTarget")

    assert stage.state["migrationPolicyName"] == "mine"
    assert stage.state["migrationConfiguration"] == {"bandwidthPerMigration": "64Mi"}


async def test_an_unreadable_policy_is_skipped_and_namespaces_are_read_only_when_needed() -> None:
    stage = Stage()
    stage.store.create(MIGRATION_POLICY, "", {"metadata": {"name": "broken"}, "spec": {"selectors": 7}})
    stage.store.create(MIGRATION_POLICY, "", body("all", allowAutoConverge=True))
    stage.catch_up()

    await stage.until("PreparingTarget")

    assert stage.state["migrationPolicyName"] == "all"
    assert not stage.store.list(NAMESPACE)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"selectors": {}, "allowPostCopy": True}, "spec.allowPostCopy: known to KubeVirt, not built"),
        ({"selectors": {}, "maxDowntimeMs": 5}, "spec.maxDowntimeMs: known to KubeVirt, not built"),
        ({"selectors": {}, "bandwidth": 5}, "spec.bandwidth: no such field"),
        ({"selectors": {"labels": {}}}, "spec.selectors.labels: no such field"),
        ({}, "spec.selectors: is required"),
        ({"selectors": {}, "completionTimeoutPerGiB": -1}, "spec.completionTimeoutPerGiB: -1 is out of range"),
        ({"selectors": {}, "bandwidthPerMigration": "-1"}, 'spec.bandwidthPerMigration: "-1" is negative'),
        ({"selectors": {"namespaceSelector": {"a b": "c"}}}, "spec.selectors.namespaceSelector"),
        ({"selectors": {"virtualMachineInstanceSelector": {"a": "b c"}}}, "spec.selectors.virtualMachineInstance"),
    ],
)
def test_an_unsupported_setting_is_refused_by_name(spec: dict[str, Any], expected: str) -> None:
    obj = {**body("a"), "spec": spec}
    verdict = review(Request(operation="CREATE", kind="MigrationPolicy", user="u", uid="1", obj=obj), Settings())

    assert not verdict.allowed
    assert str(verdict.problems[0]).startswith(expected)


def test_numbers_are_bounded_by_nothing_but_zero() -> None:
    """Upstream's example has this time-out."""
    obj = body("a", completionTimeoutPerGiB=123_456_789, bandwidthPerMigration="1Ki")

    assert review(Request(operation="CREATE", kind="MigrationPolicy", user="u", uid="1", obj=obj), Settings()).allowed


def test_switches_that_are_off_are_admitted() -> None:
    obj = body("a", allowPostCopy=False, allowWorkloadDisruption=False)
    request = Request(operation="CREATE", kind="MigrationPolicy", user="u", uid="1", obj=obj)

    assert review(request, Settings()).allowed
