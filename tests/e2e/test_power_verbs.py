# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real guests paused, resumed and rebooted by virtctl's requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import READY, Cluster, KubectlFailed
from tests.e2e.console import Console, NotYet
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

CONNECTED = '.status.conditions[?(@.type=="AgentConnected")].status'

READINESS = '.status.conditions[?(@.type=="Ready")].reason'
NAME, PATIENT, DEAF = "button", "patient", "deaf"


def press(cluster: Cluster, verb: str, body: str = "{}", name: str = NAME) -> None:
    cluster.subresource(name, verb, body=body, of="virtualmachineinstances")


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Iterator[Cluster]:
    cluster.apply(a_vm(NAME, runStrategy="Manual"))
    cluster.subresource(NAME, "start")
    cluster.running(NAME)
    yield cluster
    cluster.kubectl("delete", "vm", NAME)


@pytest.fixture
def console(machine: Cluster) -> Iterator[Console]:
    """The console of a booted guest, without its earlier output."""
    with machine.console(machine.launcher(NAME)["metadata"]["name"]) as following:
        following.expect(READY)
        following.expect("counter")
        yield following


def newest(cluster: Cluster) -> int:
    return cluster.counter(cluster.launcher(NAME)["metadata"]["name"])


def test_a_paused_guest_stops_and_an_unpaused_one_goes_on(machine: Cluster, console: Console) -> None:
    with pytest.raises(KubectlFailed, match=r"\(Conflict\).*VMI is not paused"):
        press(machine, "unpause")
    press(machine, "pause", '{"dryRun": ["All"]}')

    press(machine, "pause")
    machine.wait("vm", NAME, ".status.printableStatus", "Paused")
    machine.wait("vmi", NAME, '.status.conditions[?(@.type=="Paused")].reason', "PausedByUser")
    for kind in ("vmi", "vm"):
        machine.wait(kind, NAME, READINESS, "Paused")
    for verb, why in (("pause", "VMI is already paused"), ("softreboot", "VMI is paused")):
        with pytest.raises(KubectlFailed, match=rf"\(Conflict\).*{why}"):
            press(machine, verb)
    later = newest(machine) + 3
    with pytest.raises(NotYet):
        console.expect(f"counter {later}\n", seconds=2)

    press(machine, "unpause")
    console.expect(f"counter {later}")
    machine.wait("vm", NAME, ".status.printableStatus", "Running")
    machine.wait("vm", NAME, ".status.ready", "true")


@pytest.mark.usefixtures("console")
def test_a_frozen_guest_is_thawed_by_a_user_or_by_the_timeout(machine: Cluster) -> None:
    def is_thawed() -> bool:
        vmi = machine.get("vmi", NAME)
        return vmi is not None and "fsFreezeStatus" not in vmi["status"]

    machine.wait("vmi", NAME, '.status.conditions[?(@.type=="AgentConnected")].status', "True")
    press(machine, "freeze", '{"unfreezeTimeout": "0s"}')
    machine.wait("vmi", NAME, ".status.fsFreezeStatus", "frozen")
    press(machine, "freeze", '{"unfreezeTimeout": "1s"}')  # it already has a status, but no timeout
    for _twice in range(2):
        press(machine, "unfreeze")
    machine.eventually(is_thawed, what="thawed by a user")

    press(machine, "freeze", '{"unfreezeTimeout": "2s"}')
    machine.wait("vmi", NAME, ".status.fsFreezeStatus", "frozen")
    machine.eventually(is_thawed, what="thawed by the timeout")
    press(machine, "pause")
    with pytest.raises(KubectlFailed, match=r"\(Conflict\).*VMI is paused"):
        press(machine, "freeze")
    press(machine, "unpause")


@pytest.mark.parametrize("verb", [pytest.param("reset", marks=pytest.mark.nightly), "softreboot"])
def test_a_guest_reboots_in_its_pod(machine: Cluster, console: Console, verb: str) -> None:
    machine.wait("vmi", NAME, CONNECTED, "True")
    pod, emulators = machine.launcher(NAME)["metadata"]["uid"], machine.emulators()
    console.seen = ""

    press(machine, verb, "")

    console.expect(READY)
    assert "power button pressed" not in console.seen, "the agent rebooted it"
    assert machine.launcher(NAME)["metadata"]["uid"] == pod
    assert machine.emulators() == emulators
    vmi = machine.get("vmi", NAME)
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"


@pytest.mark.nightly
def test_a_guest_without_an_agent_reboots_by_its_power_button(machine: Cluster) -> None:
    machine.apply(a_vm(DEAF, user_data="#!/bin/sh\nagent off\n"))
    machine.running(DEAF)
    with machine.console(machine.launcher(DEAF)["metadata"]["name"]) as console:
        console.expect(READY)
        console.expect("counter")
        console.seen = ""

        press(machine, "softreboot", "", name=DEAF)

        console.expect("power button pressed")
        console.expect(READY)
    machine.kubectl("delete", "vm", DEAF)


@pytest.mark.nightly
def test_a_machine_started_paused_boots_when_it_is_unpaused(machine: Cluster) -> None:
    machine.apply(a_vm(PATIENT, runStrategy="Halted"))

    machine.subresource(PATIENT, "start", body='{"paused": true}')
    machine.wait("vm", PATIENT, ".status.printableStatus", "Paused")
    vm = machine.get("vm", PATIENT)
    assert vm is not None
    assert vm["spec"]["runStrategy"] == "Always"
    assert not vm["status"].get("stateChangeRequests")
    machine.wait("vm", PATIENT, READINESS, "Paused")
    pod = machine.launcher(PATIENT)["metadata"]["name"]
    press(machine, "unpause", name=PATIENT)

    with machine.console(pod) as console:
        console.expect(READY)
    machine.wait("vm", PATIENT, ".status.printableStatus", "Running")
    machine.wait("vm", PATIENT, ".status.ready", "true")
    machine.kubectl("delete", "vm", PATIENT)


def test_a_request_to_a_missing_machine_is_not_found(machine: Cluster) -> None:
    with pytest.raises(KubectlFailed, match=r"\(NotFound\)"):
        press(machine, "pause", name="nobody")
    with pytest.raises(KubectlFailed, match=r"\(BadRequest\).*unknown option"):
        press(machine, "reset", '{"hard": true}')
