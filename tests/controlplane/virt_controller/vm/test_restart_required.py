# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a template that a restart would change, by name: derived from the running instance alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.virt_controller.vm.live_change import find_change
from controlplane.virt_controller.vm.restart_required import NAMED_FIELDS, restart_required
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import a_vm, a_vmi, vm_world
from tests.controlplane.virt_controller.vm.templates import GUEST, Json, changed, of_domain, restart_message

CONFIGURATION = KubeVirtConfiguration(cpu_model="host-passthrough")


def message(was: Json, now: Json, *, configuration: KubeVirtConfiguration = CONFIGURATION, **run: Any) -> str:
    return restart_message(changed(was, now, configuration=configuration, made_with=CONFIGURATION, **run))


def with_(**fields: Any) -> Json:
    return {**GUEST, **fields}


PROBE = {"guestAgentPing": {}}
ROOT = {"name": "root", "containerDisk": {"image": "guest:1"}}
CHANGES: dict[str, tuple[Json, Json, str]] = {
    # template before, template now, named fields
    "a field that was not there": (GUEST, with_(hostname="web"), "hostname"),
    "a field that is there no more": (with_(hostname="web"), GUEST, "hostname"),
    "a part that was not there": (GUEST, with_(readinessProbe=PROBE), "readinessProbe"),
    "a default that is named now": (GUEST, of_domain(cpu={"model": "Nehalem"}), "domain.cpu.model"),
    "a default that is not named any more": (of_domain(cpu={"model": "Nehalem"}), GUEST, "domain.cpu.model"),
    "entries of a map, whose names are the user's": (
        with_(hostname="web", nodeSelector={"secret-1": "a"}),
        with_(nodeSelector={"secret-2": "a"}),
        "hostname, nodeSelector",
    ),
    "entries of a list, and what follows from it": (GUEST, with_(volumes=[ROOT]), "domain.devices.disks, volumes"),
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
    assert message(GUEST, with_(novelty=True)) == text


@pytest.mark.parametrize("run", [{"startStrategy": "Paused"}, {"terminationGracePeriodSeconds": 1}], ids=str)
def test_settings_of_this_run_alone_are_no_change_of_the_template(run: Json) -> None:
    """A start with paused, and a stop with a shorter grace period, write into the instance."""
    assert "template spec: hostname;" in message(GUEST, with_(hostname="web"), spec=run)


def test_a_longer_grace_period_is_a_change_of_the_template() -> None:
    assert "terminationGracePeriodSeconds" in message(GUEST, with_(terminationGracePeriodSeconds=5))


def test_a_changed_default_of_the_configuration_is_named_beside_a_changed_field() -> None:
    text = message(GUEST, with_(hostname="web"), configuration=KubeVirtConfiguration(cpu_model="host-model"))
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
    ids=["runs", "is going", "delete sent", "is over"],
)
def test_an_instance_that_is_ending_requires_no_restart(phase: Json, facts: Json, is_said: bool) -> None:
    own = a_vmi(**phase)
    meta = msgspec.structs.replace(own.metadata, annotations={TEMPLATE_HASH: "another"})
    world = vm_world(a_vm(), msgspec.structs.replace(own, metadata=meta), **facts)
    assert (restart_required(world) is not None) is is_said


LABELLED = ObjectMeta(labels={"tier": "b"})


def relabelled(was: Json, now: Json, metadata: ObjectMeta, **run: Any) -> World:
    """Return the world after a change of the template's metadata, which was empty."""
    world = changed(was, now, configuration=CONFIGURATION, made_with=CONFIGURATION, **run)
    template = msgspec.structs.replace(world.vm.spec.template, metadata=metadata)
    spec = msgspec.structs.replace(world.vm.spec, template=template)
    return dataclasses.replace(world, vm=msgspec.structs.replace(world.vm, spec=spec))


METADATA_CHANGES: dict[str, tuple[Json, ObjectMeta, str]] = {
    "labels": (GUEST, LABELLED, "labels were changed in the template metadata"),
    "both parts": (
        GUEST,
        ObjectMeta(labels={"tier": "b"}, annotations={"prometheus.io/port": "80"}),
        "labels and annotations were changed in the template metadata",
    ),
    "labels and a field": (
        with_(hostname="web"),
        LABELLED,
        (
            "a non-live-updatable field was changed in the template spec: hostname, and labels were changed in the "
            "template metadata"
        ),
    ),
    "labels and a field that changes live": (
        with_(nodeSelector={"zone": "a"}),
        LABELLED,
        "labels were changed in the template metadata",
    ),
}


@pytest.mark.parametrize(("now", "metadata", "causes"), METADATA_CHANGES.values(), ids=METADATA_CHANGES)
def test_labels_of_a_template_reach_its_instance_by_a_restart(now: Json, metadata: ObjectMeta, causes: str) -> None:
    """Services and policies select the Pod by them: without a report, users look for the fault elsewhere."""
    assert restart_message(relabelled(GUEST, now, metadata)) == f"{causes}; restart the machine to apply it"


def test_labels_do_not_hold_live_changes_back() -> None:
    world = relabelled(GUEST, with_(nodeSelector={"zone": "a"}), LABELLED)
    assert find_change(world) is not None


def test_a_note_in_the_template_requires_no_restart() -> None:
    assert restart_required(relabelled(GUEST, GUEST, ObjectMeta(annotations={"note": "x"}))) is None
