# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launchers are orphans, and how they are ended, as tables."""

from __future__ import annotations

import pytest

from controlplane.api.objects.decode import decode, decode_vmi, encode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.virt_handler.node_recovery.orphans import (
    END_AGAIN_SECONDS,
    Orphan,
    Round,
    Run,
    Seen,
    decide_orphans,
    orphan_reason,
)
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus, Traces
from tests.controlplane.virt_handler.builders import (
    NODE,
    OFF,
    OTHER,
    POD_UID,
    VMI_UID,
    a_launcher,
    a_pod,
    a_vmi,
    pod_object,
    seen,
    vmi_object,
)
from tests.controlplane.virt_handler.migrating import come

NOW = 1000.0
ORPHAN = Orphan(POD_UID, "its run is over")
NOTHING, WITH_QEMU = Traces(has_directory=True, processes=1), Traces(has_directory=True, processes=2, emulators=1)
UNREACHED = LauncherStatus(is_here=True, is_admitted=True)


def another() -> VirtualMachineInstance:
    """Another VMI of the same name."""
    body = vmi_object("Running", node=OTHER)
    body["metadata"]["uid"] = "0000cccc"
    return decode_vmi(body)


def granted(*pods: str) -> VirtualMachineInstance:
    body = vmi_object("Running", node=OTHER)
    body["status"]["activePods"] = dict.fromkeys(pods, OTHER)
    return decode_vmi(body)


UNKNOWN_UID, ELSEWHERE = f"the API server has no VMI of UID {VMI_UID}", "its VMI was granted to another Pod"
REASONS: dict[str, tuple[VirtualMachineInstance | None, str]] = {
    "gone": (None, UNKNOWN_UID),
    "another of its name": (another(), UNKNOWN_UID),
    "granted elsewhere": (granted("cccc0000"), ELSEWHERE),
    "failed": (a_vmi("Failed"), "its run is over"),
    "succeeded": (a_vmi("Succeeded"), "its run is over"),
    "runs here": (a_vmi("Running"), ""),
    "unknown": (a_vmi("Unknown"), ""),
    "deleting: it has a grace period": (a_vmi("Running", deleting=True), ""),
    "before the hand-over": (a_vmi("Scheduling"), ""),
    "handed over": (a_vmi("Scheduled"), ""),
    "granted to two": (granted(POD_UID, "cccc0000"), ""),
    "phase of another version": (a_vmi("Levitating"), ""),
    "migrates here": (come(owner=NODE, pods=("cccc0000",), targetPodUID=POD_UID, completed=False), ""),
    "migration to here failed": (come(owner=NODE, pods=("cccc0000",), targetPodUID=POD_UID, failed=True), ELSEWHERE),
    "migrates elsewhere": (come(owner=NODE, pods=("cccc0000",), completed=False), ELSEWHERE),
}


@pytest.mark.parametrize(("vmi", "reason"), REASONS.values(), ids=REASONS)
def test_only_the_api_server_decides_that_a_launcher_is_an_orphan(
    vmi: VirtualMachineInstance | None, reason: str
) -> None:
    run = None if vmi is None else decode(encode(vmi), Run)
    assert orphan_reason(a_launcher(seen()), run) == reason


def test_a_pod_without_an_owner_is_no_orphan() -> None:
    body = pod_object()
    del body["metadata"]["ownerReferences"]
    assert orphan_reason(a_launcher(seen(), decode(body, Pod)), None) == ""


END, LEFT, DOWN = Round(end=(ORPHAN,), left=(ORPHAN,)), Round(left=(ORPHAN,)), Round()
NOT_DIALLED = a_launcher(LauncherStatus(is_here=True))
RECENTLY, LONG_AGO = NOW - END_AGAIN_SECONDS + 1, NOW - END_AGAIN_SECONDS
ROUNDS: dict[str, tuple[Launcher | None, Traces | None, Round]] = {
    "runs": (a_launcher(seen()), WITH_QEMU, END),
    "runs, by libvirt": (a_launcher(seen()), NOTHING, END),
    "runs, search failed": (a_launcher(seen()), None, END),
    "being started": (a_launcher(seen(State(Life.PAUSED, "starting_up"))), WITH_QEMU, END),
    "during an operation": (a_launcher(seen(), operation="destroy"), WITH_QEMU, LEFT),
    "destroyed a moment ago": (a_launcher(seen(destroy_asked_at=RECENTLY)), WITH_QEMU, LEFT),
    "destroyed without effect": (a_launcher(seen(destroy_asked_at=LONG_AGO)), WITH_QEMU, END),
    "down": (a_launcher(seen(OFF)), NOTHING, DOWN),
    "down, during a start": (a_launcher(seen(OFF), operation="start"), NOTHING, LEFT),
    "down, by libvirt, QEMU runs": (a_launcher(seen(OFF)), WITH_QEMU, LEFT),
    "down, by libvirt, search failed": (a_launcher(seen(OFF)), None, LEFT),
    "not dialled": (NOT_DIALLED, WITH_QEMU, Round(dial=(ORPHAN,), left=(ORPHAN,))),
    "not dialled, down": (NOT_DIALLED, NOTHING, DOWN),
    "not reached": (a_launcher(UNREACHED), WITH_QEMU, LEFT),
    "removed with its Pod": (a_launcher(UNREACHED, gone=True), NOTHING, DOWN),
    "Pod failed": (a_launcher(UNREACHED, a_pod(phase="Failed")), WITH_QEMU, LEFT),
    "not known, QEMU runs": (None, WITH_QEMU, LEFT),
    "not known, down": (None, NOTHING, DOWN),
}


@pytest.mark.parametrize(("launcher", "traces", "expected"), ROUNDS.values(), ids=ROUNDS)
def test_an_orphan_is_ended_until_it_is_known_to_be_down(
    launcher: Launcher | None, traces: Traces | None, expected: Round
) -> None:
    assert decide_orphans([Seen(ORPHAN, launcher, traces)], NOW) == expected
