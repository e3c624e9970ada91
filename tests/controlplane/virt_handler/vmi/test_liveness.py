# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alive, dead or unknown: what each kind of evidence proves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.api.objects.pod import Pod
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
DEFINED, STARTING = State(Life.SHUT_OFF, "unknown"), State(Life.PAUSED, "starting_up")
PANICKED = State(Life.CRASHED, "panicked")

NO_CONTACT, FOREIGN = Unknown("the launcher is not connected"), Unknown("the launcher's domain has another identity")
NOT_STARTED, KILLED = Unknown("the domain is not started"), Dead("Failed", "GuestCrashed", "QEMU crashed or was killed")
EVICTED = Dead("Failed", "Evicted", "The node was low on memory.")
TOO_LATE = "the guest did not shut down within its grace period and was ended"
BY_DOMAIN: dict[str, tuple[LauncherStatus, Liveness]] = {
    "running": (seen(), Alive(RUNNING)),
    "being started": (seen(STARTING), Unknown("QEMU is being started")),
    "paused": (seen(State(Life.PAUSED, "user")), Alive(State(Life.PAUSED, "user"))),
    "shutting down": (seen(State(Life.SHUTTING_DOWN, "user")), Alive(State(Life.SHUTTING_DOWN, "user"))),
    "shut down": (seen(OFF), Dead("Succeeded")),
    "QEMU killed": (seen(CRASHED), KILLED),
    "panicked": (seen(PANICKED), Dead("Failed", "GuestPanicked", "the guest's kernel panicked")),
    "ended by its watchdog": (
        seen(State(Life.CRASHED, "watchdog")),
        Dead("Failed", "GuestCrashed", "the guest's watchdog expired, which was to end its run"),
    ),
    "crashed, cause unknown": (seen(State(Life.CRASHED, "unknown")), KILLED),
    "destroyed": (seen(DESTROYED), Dead("Failed", "ShutdownTimedOut", TOO_LATE)),
    "destroyed, no grace": (seen(DESTROYED, observed=observed(grace=0)), Dead("Succeeded")),
    "destroyed, no ACPI": (seen(DESTROYED, observed=observed(acpi=False)), Dead("Succeeded")),
    "never connected": (LauncherStatus(is_here=True, is_admitted=True), NO_CONTACT),
    "connection lost": (seen(is_connected=False), NO_CONTACT),
    "connection lost after its end": (seen(OFF, is_connected=False), NO_CONTACT),
    "no domain": (seen(None), NOT_STARTED),
    "only defined": (seen(DEFINED), NOT_STARTED),
    "unreadable state": (seen(State(Life.UNKNOWN, "unknown")), NOT_STARTED),
    "unreadable description": (seen(RUNNING, observed=None), Alive(RUNNING)),
    "another VMI's domain": (seen(observed=observed(uid="other")), FOREIGN),
    "another Pod's domain": (seen(CRASHED, observed=observed(pod_uid="other")), FOREIGN),
    "no identity": (seen(CRASHED, observed=replace(observed(), identity=None)), FOREIGN),
    "cannot start": (
        seen(None, failure=Failure("InvalidDomain", "no such CPU model")),
        Dead("Failed", "InvalidDomain", "no such CPU model"),
    ),
}
BY_POD: dict[str, tuple[Pod, Liveness]] = {
    "succeeded": (a_pod(phase="Succeeded", **ended(0)), Dead("Succeeded")),
    "panicked": (
        a_pod(phase="Failed", **ended(1, "the guest's kernel panicked")),
        Dead("Failed", "GuestPanicked", "the guest's kernel panicked"),
    ),
    "last words": (
        a_pod(phase="Failed", **ended(1, "no disk image in \x1b[31m/disk\n")),
        Dead("Failed", "LauncherFailed", "no disk image in [31m/disk"),
    ),
    "phase lags": (a_pod(**ended(1, "QEMU died")), Dead("Failed", "LauncherFailed", "QEMU died")),
    "phase lags, exit code 0": (a_pod(**ended(0)), Dead("Succeeded")),
    "out of memory": (
        a_pod(phase="Failed", **ended(137, "", "OOMKilled")),
        Dead("Failed", "OOMKilled", "the launcher ended with exit code 137: OOMKilled"),
    ),
    "evicted": (a_pod(phase="Failed", reason="Evicted", message="The node was low on memory."), EVICTED),
    "evicted, exit code 0": (
        a_pod(phase="Failed", reason="Evicted", message="The node was low on memory.", **ended(0)),
        EVICTED,
    ),
    "refused by the kubelet": (
        a_pod(phase="Failed", reason="UnexpectedAdmissionError", message="no devices"),
        Dead("Failed", "UnexpectedAdmissionError", "no devices"),
    ),
    "no reason": (a_pod(phase="Failed"), Dead("Failed", "PodFailed", "the launcher Pod failed and nothing says why")),
}


@pytest.mark.parametrize(("status", "expected"), BY_DOMAIN.values(), ids=BY_DOMAIN)
def test_a_guest_is_judged_by_its_domain(status: LauncherStatus, expected: Liveness) -> None:
    assert judge(a_launcher(status), VMI_UID) == expected


@pytest.mark.parametrize(("pod", "expected"), BY_POD.values(), ids=BY_POD)
def test_a_guest_without_a_domain_is_judged_by_its_pod(pod: Pod, expected: Liveness) -> None:
    assert judge(a_launcher(pod=pod), VMI_UID) == expected
    assert judge(a_launcher(seen(), pod), VMI_UID) == Alive(RUNNING)


STARTABLE: dict[str, tuple[LauncherStatus, bool]] = {
    "no domain": (seen(None), True),
    "only defined": (seen(DEFINED), True),
    "start failed": (seen(State(Life.SHUT_OFF, "failed")), True),
    "ended": (seen(OFF), False),
    "crashed": (seen(CRASHED), False),
    "runs": (seen(RUNNING), False),
    "being started": (seen(STARTING), False),
    "unreadable": (seen(State(Life.UNKNOWN, "unknown")), False),
    "never connected": (LauncherStatus(), False),
    "connection lost": (seen(None, is_connected=False), False),
    "failed for good": (seen(None, failure=Failure("x", "y")), False),
}


@pytest.mark.parametrize(("status", "expected"), STARTABLE.values(), ids=STARTABLE)
def test_only_a_domain_that_never_ran_may_be_started(status: LauncherStatus, expected: bool) -> None:
    assert is_startable(status) is expected


GOES = a_vmi("Running", deleting=True)
NO_GRACE = a_vmi("Running", deleting=True, terminationGracePeriodSeconds=0)
NO_ACPI = seen(DESTROYED, observed=observed(acpi=False))
ENDS: dict[str, tuple[VirtualMachineInstance, Launcher, str]] = {
    "crashed": (a_vmi("Running"), a_launcher(seen(CRASHED)), "GuestCrashed"),
    "deleted, killed with its Pod": (GOES, a_launcher(seen(CRASHED)), "Deleted"),
    "deleted, panicked": (GOES, a_launcher(seen(PANICKED)), "GuestPanicked"),
    "deleted, grace period over": (GOES, a_launcher(seen(DESTROYED)), "ShutdownTimedOut"),
    "deleted, no grace period": (NO_GRACE, a_launcher(seen(DESTROYED)), "Deleted"),
    "deleted, shut down": (GOES, a_launcher(seen(OFF)), ""),
    "deleted, no grace period, no ACPI": (NO_GRACE, a_launcher(NO_ACPI), ""),
    "Pod removed": (a_vmi("Running"), a_launcher(seen(DESTROYED), gone=True), "PodRemoved"),
    "Pod removed, no ACPI": (a_vmi("Running"), a_launcher(NO_ACPI, gone=True), "PodRemoved"),
    "Pod removed, killed": (a_vmi("Running"), a_launcher(seen(CRASHED), gone=True), "PodRemoved"),
    "Pod removed, panicked": (a_vmi("Running"), a_launcher(seen(PANICKED), gone=True), "GuestPanicked"),
}


@pytest.mark.parametrize(("vmi", "launcher", "reason"), ENDS.values(), ids=ENDS)
def test_a_requested_end_is_no_crash(vmi: VirtualMachineInstance, launcher: Launcher, reason: str) -> None:
    liveness = judge_run(a_world(vmi, launcher))
    assert isinstance(liveness, Dead)
    assert (liveness.outcome, liveness.reason) == ("Failed" if reason else "Succeeded", reason)


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
    "never started": (a_vmi("Unknown"), a_launcher(seen(None)), ""),
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
