# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of a template are written into the running instance, and which require a restart, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import CPUS_ADDED, FIXED_TEMPLATE_HASH, TEMPLATE_HASH

from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.live_change import find_change
from controlplane.virt_controller.vm.restart_required import restart_required
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.world import ChangeVmi
from tests.controlplane.virt_controller.vm.templates import (
    GUEST,
    MOVABLE,
    MOVING,
    STAGED,
    Json,
    a_run,
    changed,
    of_domain,
    restart_message,
)

HERE, THERE = {"zone": "a", "disk": "fast"}, {"zone": "b"}
ON_ARM = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
TAINT = {"key": "team", "operator": "Exists"}


def cpus(**cpu: Any) -> Json:
    return of_domain(cpu=cpu)


PLACES: dict[str, tuple[Json, Json, Json]] = {
    # template before, template now, patch of the instance
    "a selector that was not there": ({}, {"nodeSelector": THERE}, {"nodeSelector": THERE}),
    "another selector": (
        {"nodeSelector": HERE},
        {"nodeSelector": THERE},
        {"nodeSelector": {"zone": "b", "disk": None}},
    ),
    "no selector any more": ({"nodeSelector": HERE}, {}, {"nodeSelector": None}),
    "an affinity": ({}, {"affinity": ON_ARM}, {"affinity": ON_ARM}),
    "no affinity any more": ({"affinity": ON_ARM}, {}, {"affinity": None}),
    "a toleration": ({}, {"tolerations": [TAINT]}, {"tolerations": [TAINT]}),
    "no toleration any more": ({"tolerations": [TAINT]}, {}, {"tolerations": None}),
}


@pytest.mark.parametrize(("was", "now", "patched"), PLACES.values(), ids=PLACES)
def test_a_changed_placement_is_written_into_the_instance(was: Json, now: Json, patched: Json) -> None:
    world = changed({**GUEST, **was}, {**GUEST, **now})
    metadata = {"annotations": {TEMPLATE_HASH: template_hash(world.template)}}
    assert find_change(world) == {"metadata": metadata, "spec": patched}
    assert restart_required(world) is None


def test_the_step_is_a_change_of_the_instance() -> None:
    (step,) = decide(changed(GUEST, {**GUEST, "nodeSelector": THERE})).steps
    assert isinstance(step, ChangeVmi)
    assert step.patch["spec"] == {"nodeSelector": THERE}


def test_added_sockets_grow_the_requests_and_limits_that_the_template_names() -> None:
    """As upstream: they grow by what the configuration requests for as many CPUs."""
    resources = {"resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "2"}}}
    was, now = cpus(cores=2, sockets=1), cpus(cores=2, sockets=3)
    world = changed({"domain": {**was["domain"], **resources}}, {"domain": {**now["domain"], **resources}})
    change = find_change(world)
    assert change is not None
    assert change["spec"]["domain"] == {
        "cpu": {"sockets": 3},
        "resources": {"requests": {"cpu": "1400m"}, "limits": {"cpu": "2400m"}},
    }
    assert change["metadata"]["annotations"][CPUS_ADDED] == "4"
    assert restart_required(world) is None


def test_the_request_of_each_added_cpu_is_rounded_down() -> None:
    """As upstream, which divides before it multiplies."""
    three = KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(cpu_allocation_ratio=3))
    resources = {"resources": {"requests": {"cpu": "1"}}}
    was, now = cpus(cores=2, sockets=1), cpus(cores=2, sockets=3)
    world = changed(
        {"domain": {**was["domain"], **resources}}, {"domain": {**now["domain"], **resources}}, configuration=three
    )
    change = find_change(world)
    assert change is not None
    assert change["spec"]["domain"]["resources"] == {"requests": {"cpu": "2332m"}}


def test_requests_of_the_instance_alone_do_not_grow() -> None:
    """A request that comes from a limit, or from the configuration, is not in the template."""
    limit = {"resources": {"limits": {"cpu": "2"}}}
    was, now = cpus(cores=1, sockets=1), cpus(cores=1, sockets=2)
    world = changed({"domain": {**was["domain"], **limit}}, {"domain": {**now["domain"], **limit}})
    change = find_change(world)
    assert change is not None
    assert change["spec"]["domain"]["resources"] == {"limits": {"cpu": "2100m"}}


def test_a_guest_whose_acpi_is_not_switched_gets_more_sockets() -> None:
    was = cpus(sockets=1)
    domain = {**a_run(was)["spec"]["domain"], "features": {"acpi": {}}}
    assert find_change(changed(was, cpus(sockets=2), spec={"domain": domain})) is not None


def test_an_explicit_number_of_sockets_that_equals_the_default_changes_only_the_template_hash() -> None:
    world = changed(GUEST, cpus(sockets=1))
    assert find_change(world) == {"metadata": {"annotations": {TEMPLATE_HASH: template_hash(world.template)}}}


NO_ACPI = {"features": {"acpi": {"enabled": False}}}
FIXED = {"conditions": [{**MOVABLE, "status": "False"}]}
BOUNDS: dict[str, tuple[Json, Json, Json, str]] = {
    # template before, template now, facts of the run, message
    "more than the default maximum": (cpus(sockets=1), cpus(sockets=5), {}, "it can have 4 at most while it runs"),
    "more than its maximum": (
        cpus(sockets=1, maxSockets=2),
        cpus(sockets=3, maxSockets=2),
        {},
        "it can have 2 at most while it runs (maxSockets)",
    ),
    "fewer": (cpus(sockets=2), cpus(sockets=1), {}, "none can be removed while it runs"),
    "none any more": (cpus(sockets=2, cores=1), cpus(cores=1), {}, "none can be removed while it runs"),
    "no room": (cpus(sockets=1), cpus(sockets=2), {"made_with": STAGED}, "it was started without room for more"),
    "not migratable": (cpus(sockets=1), cpus(sockets=2), FIXED, "by a migration, and it cannot be migrated"),
    "no ACPI": (
        of_domain(cpu={"sockets": 1, "maxSockets": 4}, **NO_ACPI),
        of_domain(cpu={"sockets": 2, "maxSockets": 4}, **NO_ACPI),
        {},
        "a guest without ACPI does not notice more",
    ),
}


@pytest.mark.parametrize(("was", "now", "run", "why"), BOUNDS.values(), ids=BOUNDS)
def test_added_sockets_that_the_guest_cannot_get_live_require_a_restart(
    was: Json, now: Json, run: Json, why: str
) -> None:
    world = changed(was, now, **run)
    message = restart_message(world)
    assert message.startswith("domain.cpu.sockets was changed in the template spec, and ")
    assert why in message
    assert message.endswith("; restart the machine to apply it")
    assert find_change(world) is None


def test_a_placement_is_written_while_sockets_wait_for_a_restart() -> None:
    """The instance does not get the hash of the whole template then."""
    world = changed(cpus(sockets=2), {**cpus(sockets=1), "nodeSelector": THERE})
    assert find_change(world) == {"spec": {"nodeSelector": THERE}}


def test_an_instance_from_before_live_memory_changes_by_its_own_rule() -> None:
    """Its hash of the fixed fields was computed by another rule."""
    then = {FIXED_TEMPLATE_HASH: "bb63106282e1a6f98d68c124da57e6d4"}
    world = changed(GUEST, {**GUEST, "nodeSelector": THERE}, annotations=then)
    annotations = {TEMPLATE_HASH: template_hash(world.template)}
    assert find_change(world) == {"metadata": {"annotations": annotations}, "spec": {"nodeSelector": THERE}}
    assert find_change(changed(GUEST, of_domain(memory={"guest": "96Mi"}), annotations=then)) is None


WAITS: dict[str, Json] = {
    "another field waits for a restart": {"now": {**GUEST, "nodeSelector": THERE, "hostname": "web"}},
    "all wait for one": {"configuration": STAGED},
    "it does not run yet": {"phase": "Scheduled"},
    "it migrates": {"migrationState": MOVING},
    "it does not say what it was made from": {"annotations": {FIXED_TEMPLATE_HASH: "of an older version"}},
}


@pytest.mark.parametrize("facts", WAITS.values(), ids=WAITS)
def test_no_change_is_written_in_these_states(facts: Json) -> None:
    facts = dict(facts)
    world = changed(GUEST, facts.pop("now", {**GUEST, "nodeSelector": THERE}), **facts)
    assert find_change(world) is None
    assert (restart_required(world) is None) is ("migrationState" in facts)


def test_more_sockets_wait_until_the_guest_has_the_last_ones() -> None:
    has = {"cores": 1, "sockets": 1, "threads": 1}
    world = changed(cpus(sockets=2, cores=1), cpus(sockets=3, cores=1), currentCPUTopology=has)
    assert find_change(world) is None
    assert restart_required(world) is None


def test_an_instance_with_the_current_template_is_not_written() -> None:
    assert find_change(changed(cpus(sockets=2), cpus(sockets=2))) is None


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (cpus(cores=1, sockets=1, model="Nehalem"), "domain.cpu.model, domain.cpu.sockets"),
        (cpus(cores=1, sockets=2, model="Nehalem"), "domain.cpu.model"),
    ],
    ids=["fewer as well", "as many"],
)
def test_the_effects_of_added_sockets_are_not_named_as_template_changes(now: Json, named: str) -> None:
    resources = {"resources": {"requests": {"cpu": "1"}}}
    was = {"domain": {**cpus(cores=1, sockets=1)["domain"], **resources}}
    grown = a_run(was)["spec"]["domain"] | {"resources": {"requests": {"cpu": "1100m"}}}
    grown["cpu"] = {**grown["cpu"], "sockets": 2}
    now = {"domain": {**now["domain"], **resources}}
    message = restart_message(changed(was, now, annotations={CPUS_ADDED: "1"}, spec={"domain": grown}))
    assert f"template spec: {named};" in message
