# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which launchers are orphans, and how they are ended, as tables."""

from __future__ import annotations

import pytest

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.virt_handler.node_recovery.orphans import (
    END_AGAIN_SECONDS,
    Orphan,
    Round,
    Seen,
    decide_orphans,
    orphan_reason,
)
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus, Traces
from tests.controlplane.virt_handler.builders import (
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


@pytest.mark.parametrize(
    ("vmi", "said"),
    [
        pytest.param(None, f"the API server knows no VMI of UID {VMI_UID}", id="gone"),
        pytest.param(another(), f"the API server knows no VMI of UID {VMI_UID}", id="another of its name"),
        pytest.param(granted("cccc0000"), "its VMI was granted to another Pod", id="granted elsewhere"),
        pytest.param(a_vmi("Failed"), "its run is over", id="failed"),
        pytest.param(a_vmi("Succeeded"), "its run is over", id="succeeded"),
        pytest.param(a_vmi("Running"), "", id="runs here"),
        pytest.param(a_vmi("Unknown"), "", id="nobody knew how it is"),
        pytest.param(a_vmi("Running", deleting=True), "", id="being deleted: it has a grace period"),
        pytest.param(a_vmi("Scheduling"), "", id="before the hand-over"),
        pytest.param(a_vmi("Scheduled"), "", id="handed over"),
        pytest.param(granted(POD_UID, "cccc0000"), "", id="granted to two: nothing follows"),
        pytest.param(a_vmi("Levitating"), "", id="a phase of another version"),
    ],
)
def test_only_the_api_server_decides_that_a_launcher_is_an_orphan(
    vmi: VirtualMachineInstance | None, said: str
) -> None:
    assert orphan_reason(a_launcher(seen()), vmi) == said


def test_a_pod_without_an_owner_is_no_orphan() -> None:
    body = pod_object()
    del body["metadata"]["ownerReferences"]
    assert orphan_reason(a_launcher(seen(), decode(body, Pod)), None) == ""


@pytest.mark.parametrize(
    ("launcher", "traces", "expected"),
    [
        pytest.param(a_launcher(seen()), WITH_QEMU, Round(end=(ORPHAN,), left=(ORPHAN,)), id="it runs"),
        pytest.param(a_launcher(seen()), NOTHING, Round(end=(ORPHAN,), left=(ORPHAN,)), id="libvirt says that it runs"),
        pytest.param(a_launcher(seen()), None, Round(end=(ORPHAN,), left=(ORPHAN,)), id="the node cannot be asked"),
        pytest.param(
            a_launcher(seen(State(Life.PAUSED, "starting_up"))),
            WITH_QEMU,
            Round(end=(ORPHAN,), left=(ORPHAN,)),
            id="it is being started",
        ),
        pytest.param(
            a_launcher(seen(), operation="destroy"), WITH_QEMU, Round(left=(ORPHAN,)), id="a verb is under way"
        ),
        pytest.param(
            a_launcher(seen(destroy_asked_at=NOW - END_AGAIN_SECONDS + 1)),
            WITH_QEMU,
            Round(left=(ORPHAN,)),
            id="told just now",
        ),
        pytest.param(
            a_launcher(seen(destroy_asked_at=NOW - END_AGAIN_SECONDS)),
            WITH_QEMU,
            Round(end=(ORPHAN,), left=(ORPHAN,)),
            id="told, and nothing came of it",
        ),
        pytest.param(a_launcher(seen(OFF)), NOTHING, Round(), id="down"),
        pytest.param(
            a_launcher(seen(OFF), operation="start"),
            NOTHING,
            Round(left=(ORPHAN,)),
            id="down, and a start is under way that began before the node was away",
        ),
        pytest.param(a_launcher(seen(OFF)), WITH_QEMU, Round(left=(ORPHAN,)), id="libvirt says so, its QEMU is there"),
        pytest.param(a_launcher(seen(OFF)), None, Round(left=(ORPHAN,)), id="libvirt says so, the node does not"),
        pytest.param(
            a_launcher(LauncherStatus(is_here=True)),
            WITH_QEMU,
            Round(dial=(ORPHAN,), left=(ORPHAN,)),
            id="not dialled by this process",
        ),
        pytest.param(a_launcher(LauncherStatus(is_here=True)), NOTHING, Round(), id="not dialled, nothing to be ended"),
        pytest.param(a_launcher(UNREACHED), WITH_QEMU, Round(left=(ORPHAN,)), id="not reached"),
        pytest.param(a_launcher(UNREACHED, gone=True), NOTHING, Round(), id="gone with its Pod"),
        pytest.param(
            a_launcher(UNREACHED, a_pod(phase="Failed")), WITH_QEMU, Round(left=(ORPHAN,)), id="failed by others' word"
        ),
        pytest.param(None, WITH_QEMU, Round(left=(ORPHAN,)), id="not known, and its QEMU is there"),
        pytest.param(None, NOTHING, Round(), id="not known, nothing is there"),
    ],
)
def test_an_orphan_is_ended_until_it_is_known_to_be_down(
    launcher: Launcher | None, traces: Traces | None, expected: Round
) -> None:
    assert decide_orphans([Seen(ORPHAN, launcher, traces)], NOW) == expected
