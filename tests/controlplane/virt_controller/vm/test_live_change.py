# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of a template are written into the running instance, and which require a restart, as tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import CPUS_ADDED, FIXED_TEMPLATE_HASH, TEMPLATE_HASH

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.live_change import find_change
from controlplane.virt_controller.vm.restart_required import restart_required
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from controlplane.virt_controller.vm.world import ChangeVmi, World
from tests.controlplane.virt_controller.builders import VM_UID, a_vm, vm_world

Json = dict[str, Any]
CONFIGURATION = KubeVirtConfiguration()
STAGED = KubeVirtConfiguration(vm_rollout_strategy="Stage")
GUEST = {"domain": {"memory": {"guest": "64Mi"}}}
MOVABLE = {"type": "LiveMigratable", "status": "True"}
HERE, THERE = {"zone": "a", "disk": "fast"}, {"zone": "b"}
ON_ARM = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
TAINT = {"key": "team", "operator": "Exists"}


def a_machine(template: Json) -> Any:
    plain = msgspec.to_builtins(a_vm(), str_keys=True)
    meta = {**plain["metadata"], "name": "web", "namespace": "default", "uid": VM_UID, "generation": 3}
    spec = {"runStrategy": "Always", "template": {"spec": template}}
    return decode_vm({"metadata": {**meta, "finalizers": list(a_vm().metadata.finalizers)}, "spec": spec})


def a_run(
    was: Json,
    *,
    configuration: KubeVirtConfiguration = CONFIGURATION,
    annotations: Json | None = None,
    spec: Json | None = None,
    **status: Any,
) -> Json:
    """Build the instance of a template as the controller does; it is running."""
    made = default_instance(build_vmi(a_machine(was), msgspec.json.encode(was)), configuration, seed=VM_UID)
    made["metadata"].update(uid="run-1", resourceVersion="20")
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": VM_UID, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    made["metadata"]["annotations"].update(annotations or {})
    made["spec"].update(spec or {})
    cpu = made["spec"]["domain"]["cpu"]
    has = {part: cpu.get(part) or 1 for part in ("cores", "sockets", "threads")}
    made["status"] = {"phase": "Running", "conditions": [MOVABLE], "currentCPUTopology": has, **status}
    return made


def a_world(was: Json, now: Json, *, configuration: KubeVirtConfiguration = CONFIGURATION, **run: Any) -> World:
    own = decode_vmi(a_run(was, **run))
    return vm_world(a_machine(now), own, template=msgspec.json.encode(now), configuration=configuration)


def cpus(**cpu: Any) -> Json:
    return {"domain": {"memory": {"guest": "64Mi"}, "cpu": cpu}}


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
    world = a_world({**GUEST, **was}, {**GUEST, **now})
    metadata = {"annotations": {TEMPLATE_HASH: template_hash(world.template)}}
    assert find_change(world) == {"metadata": metadata, "spec": patched}
    assert restart_required(world) is None


def test_the_step_is_a_change_of_the_instance() -> None:
    (step,) = decide(a_world(GUEST, {**GUEST, "nodeSelector": THERE})).steps
    assert isinstance(step, ChangeVmi)
    assert step.patch["spec"] == {"nodeSelector": THERE}


def test_added_sockets_grow_the_requests_and_limits_that_the_template_names() -> None:
    """As upstream: they grow by what the configuration requests for as many CPUs."""
    resources = {"resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "2"}}}
    was, now = cpus(cores=2, sockets=1), cpus(cores=2, sockets=3)
    world = a_world({"domain": {**was["domain"], **resources}}, {"domain": {**now["domain"], **resources}})
    change = find_change(world)
    assert change is not None
    assert change["spec"]["domain"] == {
        "cpu": {"sockets": 3},
        "resources": {"requests": {"cpu": "1400m"}, "limits": {"cpu": "2400m"}},
    }
    assert change["metadata"]["annotations"][CPUS_ADDED] == "4"
    assert restart_required(world) is None


def test_requests_of_the_instance_alone_do_not_grow() -> None:
    """A request that comes from a limit, or from the configuration, is not in the template."""
    limit = {"resources": {"limits": {"cpu": "2"}}}
    was, now = cpus(cores=1, sockets=1), cpus(cores=1, sockets=2)
    world = a_world({"domain": {**was["domain"], **limit}}, {"domain": {**now["domain"], **limit}})
    change = find_change(world)
    assert change is not None
    assert change["spec"]["domain"]["resources"] == {"limits": {"cpu": "2100m"}}


def test_an_explicit_number_of_sockets_that_equals_the_default_changes_only_the_template_hash() -> None:
    world = a_world(GUEST, cpus(sockets=1))
    assert find_change(world) == {"metadata": {"annotations": {TEMPLATE_HASH: template_hash(world.template)}}}


BOUNDS: dict[str, tuple[Json, Json, Json, str]] = {
    # template before, template now, fields of the run, message
    "more than it can have": (cpus(sockets=1), cpus(sockets=5), {}, "it can have 4 at most while it runs (maxSockets)"),
    "more than it may have": (
        cpus(sockets=1, maxSockets=2),
        cpus(sockets=3, maxSockets=2),
        {},
        "it can have 2 at most while it runs (maxSockets)",
    ),
    "fewer": (cpus(sockets=2), cpus(sockets=1), {}, "none are taken away while it runs"),
    "none said any more": (cpus(sockets=2, cores=1), cpus(cores=1), {}, "none are taken away while it runs"),
    "started without room": (
        cpus(sockets=1),
        cpus(sockets=2),
        {"configuration": STAGED},
        "it was started without room for more",
    ),
    "it cannot be moved": (
        cpus(sockets=1),
        cpus(sockets=2),
        {"conditions": [{**MOVABLE, "status": "False"}]},
        "it gets more by a migration, and it cannot be migrated",
    ),
    "it has no ACPI": (
        {"domain": {**cpus(sockets=1, maxSockets=4)["domain"], "features": {"acpi": {"enabled": False}}}},
        {"domain": {**cpus(sockets=2, maxSockets=4)["domain"], "features": {"acpi": {"enabled": False}}}},
        {},
        "a guest without ACPI does not hear of more",
    ),
}


@pytest.mark.parametrize(("was", "now", "run", "why"), BOUNDS.values(), ids=BOUNDS)
def test_added_sockets_that_the_guest_cannot_get_live_require_a_restart(
    was: Json, now: Json, run: Json, why: str
) -> None:
    run = dict(run)
    configuration = run.pop("configuration", CONFIGURATION)
    own = decode_vmi(a_run(was, configuration=configuration, **run))
    world = vm_world(a_machine(now), own, template=msgspec.json.encode(now))
    condition = restart_required(world)
    assert condition is not None
    text = "domain.cpu.sockets was changed in the template spec, and {}; restart the machine to apply it"
    assert condition.message == text.format(why)
    assert find_change(world) is None


def test_a_placement_is_written_while_sockets_wait_for_a_restart() -> None:
    """The instance does not get the hash of the whole template then."""
    world = a_world(cpus(sockets=2), {**cpus(sockets=1), "nodeSelector": THERE})
    assert find_change(world) == {"spec": {"nodeSelector": THERE}}


def test_an_instance_from_before_live_memory_changes_by_its_own_rule() -> None:
    """Its hash of the fixed fields was computed by another rule."""
    then = {FIXED_TEMPLATE_HASH: "bb63106282e1a6f98d68c124da57e6d4"}
    assert find_change(a_world(GUEST, {**GUEST, "nodeSelector": THERE}, annotations=then)) == {
        "metadata": {
            "annotations": {TEMPLATE_HASH: template_hash(msgspec.json.encode({**GUEST, "nodeSelector": THERE}))}
        },
        "spec": {"nodeSelector": THERE},
    }
    assert find_change(a_world(GUEST, {"domain": {"memory": {"guest": "96Mi"}}}, annotations=then)) is None


MOVING = {"migrationUid": "m", "targetNode": "node-2", "targetPodUID": "p", "sourceNode": "node-1", "sourcePodUID": "q"}
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
    world = a_world(GUEST, facts.pop("now", {**GUEST, "nodeSelector": THERE}), **facts)
    assert find_change(world) is None
    assert (restart_required(world) is None) is ("migrationState" in facts)


def test_more_sockets_wait_until_the_guest_has_the_last_ones() -> None:
    has = {"cores": 1, "sockets": 1, "threads": 1}
    world = a_world(cpus(sockets=2, cores=1), cpus(sockets=3, cores=1), currentCPUTopology=has)
    assert find_change(world) is None
    assert restart_required(world) is None


def test_an_instance_with_the_current_template_is_not_written() -> None:
    assert find_change(a_world(cpus(sockets=2), cpus(sockets=2))) is None


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
    condition = restart_required(a_world(was, now, annotations={CPUS_ADDED: "1"}, spec={"domain": grown}))
    assert condition is not None
    assert f"template spec: {named};" in condition.message
