# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a template that a restart would change, by name: derived from the running instance alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.virt_controller.vm.restart_required import NAMED_FIELDS, restart_required
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from tests.controlplane.virt_controller.builders import a_vm, a_vmi, vm_world

Json = dict[str, Any]
GUEST = {"domain": {"memory": {"guest": "64Mi"}}}
CONFIGURATION = KubeVirtConfiguration(cpu_model="host-passthrough")


def a_machine(template: Json) -> Any:
    plain = msgspec.to_builtins(a_vm(), str_keys=True)
    meta = {"name": "web", "namespace": "default", "uid": a_vm().metadata.uid, "generation": 3}
    return decode_vm(
        {"metadata": meta, "spec": {"runStrategy": "Always", "template": {"spec": template}}, "status": plain["status"]}
    )


def message(was: Json, now: Json, configuration: KubeVirtConfiguration = CONFIGURATION, **run: Any) -> str:
    """Build the instance of a template, change the template, and return the message. run: changes of the instance's
    spec.
    """
    vmi = build_vmi(a_machine(was), msgspec.json.encode(was))
    filled = default_instance(vmi, CONFIGURATION, seed=a_vm().metadata.uid)
    filled["metadata"]["uid"] = "run-1"
    filled["spec"].update(run)
    own = decode_vmi({**filled, "status": {"phase": "Running"}})
    assert own.metadata.annotations[TEMPLATE_HASH] == template_hash(msgspec.json.encode(was))
    world = vm_world(a_machine(now), own, template=msgspec.json.encode(now), configuration=configuration)
    condition = restart_required(world)
    assert condition is not None
    return condition.message


def changed(**fields: Any) -> Json:
    return {**GUEST, **fields}


def of_domain(**fields: Any) -> Json:
    return {"domain": {**GUEST["domain"], **fields}}


PROBE = {"guestAgentPing": {}}
ROOT = {"name": "root", "containerDisk": {"image": "guest:1"}}
CHANGES: dict[str, tuple[Json, Json, str]] = {
    # template before, template now, named fields
    "a field that was not there": (GUEST, changed(hostname="web"), "hostname"),
    "a field that is there no more": (changed(hostname="web"), GUEST, "hostname"),
    "a part that was not there": (GUEST, changed(readinessProbe=PROBE), "readinessProbe"),
    "a default that is said now": (GUEST, of_domain(cpu={"model": "Nehalem"}), "domain.cpu.model"),
    "a default that is said no more": (of_domain(cpu={"model": "Nehalem"}), GUEST, "domain.cpu.model"),
    "entries of a map, whose names are the user's": (
        changed(hostname="web", nodeSelector={"secret-1": "a"}),
        changed(nodeSelector={"secret-2": "a"}),
        "hostname, nodeSelector",
    ),
    "entries of a list, and what follows from it": (GUEST, changed(volumes=[ROOT]), "domain.devices.disks, volumes"),
    "several": (
        GUEST,
        {**of_domain(memory={"guest": "65Mi"}, machine={"type": "pc"}), "hostname": "x"},
        "domain.machine.type, domain.memory.guest, hostname",
    ),
}


@pytest.mark.parametrize(("was", "now", "named"), CHANGES.values(), ids=CHANGES)
def test_the_fields_that_a_restart_changes_are_named(was: Json, now: Json, named: str) -> None:
    text = "a non-live-updatable field was changed in the template spec: {}; restart the machine to apply it"
    assert message(was, now) == text.format(named)


def test_unknown_fields_are_not_named() -> None:
    """A field of a newer version changes the template's hash, but this version cannot name it."""
    text = "a non-live-updatable field was changed in the template spec; restart the machine to apply it"
    assert message(GUEST, changed(novelty=True)) == text


@pytest.mark.parametrize("run", [{"startStrategy": "Paused"}, {"terminationGracePeriodSeconds": 1}], ids=str)
def test_settings_of_this_run_alone_are_no_change_of_the_template(run: Json) -> None:
    """A start with paused, and a stop with a shorter grace period, write into the instance."""
    assert "template spec: hostname;" in message(GUEST, changed(hostname="web"), **run)


def test_a_longer_grace_period_is_a_change_of_the_template() -> None:
    assert "terminationGracePeriodSeconds" in message(GUEST, changed(terminationGracePeriodSeconds=5))


def test_a_changed_default_of_the_configuration_is_named_beside_a_changed_field() -> None:
    text = message(GUEST, changed(hostname="web"), KubeVirtConfiguration(cpu_model="host-model"))
    assert "template spec: domain.cpu.model, hostname;" in text


def test_of_very_many_fields_only_the_first_are_named() -> None:
    many = {
        **of_domain(memory={"guest": "65Mi"}, machine={"type": "pc"}, cpu={"cores": 2, "model": "x", "sockets": 3}),
        **dict.fromkeys(("hostname", "subdomain", "schedulerName", "priorityClassName", "dnsPolicy"), "x"),
    }
    text = message(GUEST, many)
    assert text.count(",") == NAMED_FIELDS
    assert "and 3 more;" in text


@pytest.mark.parametrize(
    ("phase", "facts", "is_said"),
    [
        ({"phase": "Running"}, {}, True),
        ({"phase": "Running", "deleting": True}, {}, False),
        ({"phase": "Running"}, {"is_delete_sent": True}, False),
        ({"phase": "Succeeded"}, {}, False),
    ],
    ids=["runs", "is going", "was told to go", "is over"],
)
def test_an_instance_that_is_ending_requires_no_restart(phase: Json, facts: Json, is_said: bool) -> None:
    own = a_vmi(**phase)
    meta = msgspec.structs.replace(own.metadata, annotations={TEMPLATE_HASH: "another"})
    world = vm_world(a_vm(), msgspec.structs.replace(own, metadata=meta), **facts)
    assert (restart_required(world) is not None) is is_said
