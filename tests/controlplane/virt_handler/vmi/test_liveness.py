# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alive, dead or unknown: what each kind of evidence proves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.virt_handler.vmi.liveness import (
    Alive,
    Dead,
    Liveness,
    Unknown,
    is_startable,
    judge,
    judge_run,
    missing_pod,
)
from controlplane.virt_handler.vmi.world import Failure, Launcher, LauncherStatus, Look
from tests.controlplane.virt_handler.builders import (
    OFF,
    POD_UID,
    RUNNING,
    VMI_UID,
    a_launcher,
    a_look,
    a_pod,
    a_vmi,
    a_world,
    ended,
    observed,
    seen,
)

CRASHED = State(Life.SHUT_OFF, "crashed")
DESTROYED = State(Life.SHUT_OFF, "destroyed")
DEFINED = State(Life.SHUT_OFF, "unknown")

ROWS: dict[str, tuple[Launcher, Liveness]] = {
    "running": (a_launcher(seen()), Alive(RUNNING)),
    "being started": (a_launcher(seen(State(Life.PAUSED, "starting_up"))), Unknown("QEMU is being started")),
    "paused": (a_launcher(seen(State(Life.PAUSED, "user"))), Alive(State(Life.PAUSED, "user"))),
    "shutting down": (a_launcher(seen(State(Life.SHUTTING_DOWN, "user"))), Alive(State(Life.SHUTTING_DOWN, "user"))),
    "shut down by itself": (a_launcher(seen(OFF)), Dead("Succeeded")),
    "QEMU killed": (a_launcher(seen(CRASHED)), Dead("Failed", "GuestCrashed", "QEMU crashed or was killed")),
    "panicked": (
        a_launcher(seen(State(Life.CRASHED, "panicked"))),
        Dead("Failed", "GuestPanicked", "the guest's kernel panicked"),
    ),
    "switched off by its watchdog": (
        a_launcher(seen(State(Life.CRASHED, "watchdog"))),
        Dead("Failed", "GuestCrashed", "the guest's watchdog expired, which was to end its run"),
    ),
    "crashed, nobody knows how": (
        a_launcher(seen(State(Life.CRASHED, "unknown"))),
        Dead("Failed", "GuestCrashed", "QEMU crashed or was killed"),
    ),
    "had to be destroyed": (
        a_launcher(seen(DESTROYED)),
        Dead("Failed", "ShutdownTimedOut", "the guest did not shut down within its grace period and was ended"),
    ),
    "destroyed, no grace": (a_launcher(seen(DESTROYED, observed=observed(grace=0))), Dead("Succeeded")),
    "destroyed, no ACPI": (a_launcher(seen(DESTROYED, observed=observed(acpi=False))), Dead("Succeeded")),
    "no contact yet": (a_launcher(), Unknown("the launcher is not reached")),
    "contact lost while it ran": (a_launcher(seen(is_connected=False)), Unknown("the launcher is not reached")),
    "contact lost after it ended, Pod still there": (
        a_launcher(seen(OFF, is_connected=False)),
        Unknown("the launcher is not reached"),
    ),
    "no domain": (a_launcher(seen(None)), Unknown("the domain is not started")),
    "only defined": (a_launcher(seen(DEFINED)), Unknown("the domain is not started")),
    "state not readable": (
        a_launcher(seen(State(Life.UNKNOWN, "unknown"))),
        Unknown("the domain is not started"),
    ),
    "another VMI's identity": (
        a_launcher(seen(observed=observed(uid="other"))),
        Unknown("the launcher's domain carries another identity"),
    ),
    "no identity": (
        a_launcher(seen(CRASHED, observed=replace(observed(), identity=None))),
        Unknown("the launcher's domain carries another identity"),
    ),
    "another Pod's identity": (
        a_launcher(seen(CRASHED, observed=observed(pod_uid="other"))),
        Unknown("the launcher's domain carries another identity"),
    ),
    "Pod succeeded": (a_launcher(pod=a_pod(phase="Succeeded", **ended(0))), Dead("Succeeded")),
    "its kernel panicked, by the launcher's last words": (
        a_launcher(pod=a_pod(phase="Failed", **ended(1, "the guest's kernel panicked"))),
        Dead("Failed", "GuestPanicked", "the guest's kernel panicked"),
    ),
    "launcher's last words": (
        a_launcher(pod=a_pod(phase="Failed", **ended(1, "no disk image in \x1b[31m/disk\n"))),
        Dead("Failed", "LauncherFailed", "no disk image in [31m/disk"),
    ),
    "launcher ended, Pod phase not told yet": (
        a_launcher(pod=a_pod(**ended(1, "QEMU died"))),
        Dead("Failed", "LauncherFailed", "QEMU died"),
    ),
    "out of memory": (
        a_launcher(pod=a_pod(phase="Failed", **ended(137, "", "OOMKilled"))),
        Dead("Failed", "OOMKilled", "the launcher ended with exit code 137: OOMKilled"),
    ),
    "evicted": (
        a_launcher(pod=a_pod(phase="Failed", reason="Evicted", message="The node was low on memory.")),
        Dead("Failed", "Evicted", "The node was low on memory."),
    ),
    "evicted, and its launcher went quietly": (
        a_launcher(pod=a_pod(phase="Failed", reason="Evicted", message="The node was low on memory.", **ended(0))),
        Dead("Failed", "Evicted", "The node was low on memory."),
    ),
    "launcher went quietly, Pod phase not told yet": (a_launcher(pod=a_pod(**ended(0))), Dead("Succeeded")),
    "refused by the kubelet after a reboot": (
        a_launcher(pod=a_pod(phase="Failed", reason="UnexpectedAdmissionError", message="no devices")),
        Dead("Failed", "UnexpectedAdmissionError", "no devices"),
    ),
    "failed without a word": (
        a_launcher(pod=a_pod(phase="Failed")),
        Dead("Failed", "PodFailed", "the launcher Pod failed and nothing says why"),
    ),
    "seen running while the API says the Pod failed": (a_launcher(seen(), a_pod(phase="Failed")), Alive(RUNNING)),
    "cannot ever start": (
        a_launcher(seen(None, failure=Failure("InvalidDomain", "no such CPU model"))),
        Dead("Failed", "InvalidDomain", "no such CPU model"),
    ),
}


@pytest.mark.parametrize(("launcher", "expected"), ROWS.values(), ids=ROWS)
def test_the_verdict_needs_proof(launcher: Launcher, expected: Liveness) -> None:
    assert judge(launcher, VMI_UID) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (seen(None), True),
        (seen(DEFINED), True),
        (seen(State(Life.SHUT_OFF, "failed")), True),
        (seen(OFF), False),
        (seen(CRASHED), False),
        (seen(RUNNING), False),
        (seen(State(Life.PAUSED, "starting_up")), False),
        (seen(State(Life.UNKNOWN, "unknown")), False),
        (LauncherStatus(), False),
        (seen(None, is_connected=False), False),
        (seen(None, failure=Failure("x", "y")), False),
    ],
    ids=[
        "no domain",
        "only defined",
        "its start failed",
        "it ran and ended",
        "it ran and crashed",
        "it runs",
        "it is being started",
        "not readable",
        "no contact",
        "lost contact",
        "never",
    ],
)
def test_only_a_domain_that_never_ran_may_be_started(status: LauncherStatus, expected: bool) -> None:
    assert is_startable(status) is expected


@pytest.mark.parametrize(
    ("vmi", "launcher", "expected"),
    [
        (a_vmi("Running"), a_launcher(seen(CRASHED)), "GuestCrashed"),
        (a_vmi("Running", deleting=True), a_launcher(seen(CRASHED)), "Deleted"),
        (a_vmi("Running", deleting=True), a_launcher(seen(State(Life.CRASHED, "panicked"))), "GuestPanicked"),
        (a_vmi("Running", deleting=True), a_launcher(seen(DESTROYED)), "ShutdownTimedOut"),
        (
            a_vmi("Running", deleting=True, terminationGracePeriodSeconds=0),
            a_launcher(seen(DESTROYED)),
            "Deleted",
        ),
        (a_vmi("Running"), a_launcher(seen(DESTROYED), gone=True), "PodRemoved"),
        (a_vmi("Running"), a_launcher(seen(DESTROYED, observed=observed(acpi=False)), gone=True), "PodRemoved"),
        (a_vmi("Running"), a_launcher(seen(CRASHED), gone=True), "PodRemoved"),
        (a_vmi("Running"), a_launcher(seen(State(Life.CRASHED, "panicked")), gone=True), "GuestPanicked"),
    ],
    ids=[
        "crashed",
        "killed with its Pod while its VMI goes",
        "panicked while its VMI goes",
        "deaf until the end of its grace period",
        "ended without a grace period",
        "Pod removed by force, ended",
        "Pod removed by force, ended, no ACPI",
        "Pod removed by force, killed",
        "Pod removed by force, panicked before",
    ],
)
def test_a_requested_end_is_no_crash(vmi: VirtualMachineInstance, launcher: Launcher, expected: str) -> None:
    liveness = judge_run(a_world(vmi, launcher))
    assert isinstance(liveness, Dead)
    assert (liveness.outcome, liveness.reason) == ("Failed", expected)


def test_a_guest_that_shut_down_on_deletion_has_succeeded() -> None:
    assert judge_run(a_world(a_vmi("Running", deleting=True), a_launcher(seen(OFF)))) == Dead("Succeeded")
    no_acpi = a_launcher(seen(DESTROYED, observed=observed(acpi=False)))
    hurried = a_vmi("Running", deleting=True, terminationGracePeriodSeconds=0)
    assert judge_run(a_world(hurried, no_acpi)) == Dead("Succeeded")


SOUGHT = {
    "runs": (a_vmi("Running"), a_launcher(seen()), ""),
    "libvirt lost its domain": (a_vmi("Running"), a_launcher(seen(None)), POD_UID),
    "it has none before it was started": (a_vmi(), a_launcher(seen(None)), ""),
    "it is defined and was never up": (a_vmi(), a_launcher(seen(DEFINED)), ""),
    "its start failed": (a_vmi(), a_launcher(seen(State(Life.SHUT_OFF, "failed"))), ""),
    "there is no contact": (a_vmi("Running"), a_launcher(seen(None, is_connected=False)), ""),
    "a new libvirt found its QEMU dead before it was seen up": (
        a_vmi(),
        a_launcher(seen(State(Life.SHUT_OFF, "daemon"))),
        POD_UID,
    ),
    "libvirt has it shut off and does not know why": (
        a_vmi("Running"),
        a_launcher(seen(State(Life.SHUT_OFF, "unknown"))),
        POD_UID,
    ),
    "libvirt is not reached": (a_vmi("Running"), a_launcher(seen(None, is_connected=False)), ""),
    "never started": (a_vmi("Unknown"), a_launcher(seen(None)), ""),
    "Scheduled": (a_vmi("Scheduled"), a_launcher(seen(None)), ""),
    "its Pod is not listed": (a_vmi("Running"), a_launcher(seen(), gone=True), POD_UID),
}


@pytest.mark.parametrize(("vmi", "launcher", "uid"), SOUGHT.values(), ids=SOUGHT.keys())
def test_the_node_is_searched_only_if_libvirt_and_the_pod_list_know_nothing(
    vmi: VirtualMachineInstance, launcher: Launcher, uid: str
) -> None:
    assert missing_pod(a_world(vmi, launcher)) == uid


def test_a_removed_launcher_counts_as_running_while_any_trace_is_left() -> None:
    """For a listed launcher the end of QEMU is enough. A removed one may still use its directory."""
    gone = a_launcher(seen(is_connected=False, has_run=True), gone=True)
    liveness = judge_run(a_world(a_vmi("Running"), gone, look=a_look(directory=True)))
    assert isinstance(liveness, Unknown)
    assert "this node has its directory" in liveness.why
    liveness = judge_run(a_world(a_vmi("Running"), gone, look=a_look()))
    assert isinstance(liveness, Dead)
    assert liveness.reason == "LauncherGone"


def test_no_pod_is_missing_before_the_hand_over() -> None:
    assert missing_pod(a_world(None, a_launcher(seen(None, has_run=True)))) == ""
    assert missing_pod(a_world(a_vmi("Running"), are_launchers_known=False)) == ""


def test_a_domain_without_a_read_description_is_not_foreign() -> None:
    assert judge(a_launcher(seen(RUNNING, observed=None)), VMI_UID) == Alive(RUNNING)


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (None, None),
        (a_look(), "GuestLost"),
        (a_look(directory=True, processes=3), "GuestLost"),
        (a_look(directory=True, processes=3, emulators=1), None),
    ],
    ids=["not looked yet", "nothing is left", "its launcher is there, and no QEMU", "its QEMU runs"],
)
def test_a_guest_that_libvirt_lost_is_dead_when_its_qemu_is_gone(look: Look | None, reason: str | None) -> None:
    liveness = judge_run(a_world(a_vmi("Running"), a_launcher(seen(None)), look=look))
    assert (liveness.reason if isinstance(liveness, Dead) else None) == reason


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (None, None),
        (a_look(), "LauncherGone"),
        (a_look(directory=True), None),
        (a_look(processes=1), None),
        (a_look(processes=2, emulators=1), None),
    ],
    ids=["not looked yet", "nothing is left", "its directory", "a process", "its QEMU"],
)
def test_an_unlisted_launcher_is_gone_when_no_traces_are_left(look: Look | None, reason: str | None) -> None:
    liveness = judge_run(a_world(a_vmi("Running"), look=look))
    assert (liveness.reason if isinstance(liveness, Dead) else None) == reason
