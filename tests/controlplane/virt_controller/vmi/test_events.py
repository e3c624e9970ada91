# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run is an Event even if virt-controller observes it before the node's virt-handler."""

from __future__ import annotations

import pytest

from controlplane.api.launch_plan import KERNEL_PANICKED
from tests.controlplane.virt_controller.vmi.stage import Stage
from tests.support.store import Json


@pytest.fixture
def stage() -> Stage:
    return Stage()


def ended(exit_code: int, message: str = "") -> Json:
    phase = "Failed" if exit_code else "Succeeded"
    state = {"terminated": {"exitCode": exit_code, "message": message}}
    return {"phase": phase, "containerStatuses": [{"name": "compute", "state": state}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            ended(1, "QEMU ended unexpectedly"),
            "The VirtualMachineInstance failed: QEMU ended unexpectedly",
            id="failed",
        ),
        pytest.param(ended(0), "The VirtualMachineInstance was shut down.", id="succeeded"),
    ],
)
async def test_the_end_of_a_run_is_recorded_once(stage: Stage, status: Json, expected: str) -> None:
    stage.place(await stage.until_running(), status)
    for _unused in range(2):
        await stage.work()

    assert [message for _unused, reason, message in stage.recorder.events if reason == "Stopped"] == [expected]


async def test_a_kernel_panic_is_recorded_before_the_end(stage: Stage) -> None:
    stage.place(await stage.until_running(), ended(1, KERNEL_PANICKED))
    await stage.work()

    assert stage.recorder.reasons[-2:] == ["GuestPanicked", "Stopped"]
    assert stage.status["reason"] == "GuestPanicked"


async def test_a_guest_that_never_ran_has_not_stopped(stage: Stage) -> None:
    stage.place(await stage.until_begun(), ended(1, "no disk"))
    await stage.work()

    assert stage.status["phase"] == "Failed"
    assert "Stopped" not in stage.recorder.reasons


@pytest.mark.parametrize("ready", ["False", "True"], ids=["not ready", "still ready"])
async def test_an_end_that_virt_handler_wrote_is_not_recorded_again(stage: Stage, ready: str) -> None:
    key = await stage.until_running()
    stage.patch_status({"phase": "Succeeded", "conditions": [{"type": "Ready", "status": ready}]})
    stage.place(key, ended(0))
    await stage.work()

    assert stage.recorder.events == []
