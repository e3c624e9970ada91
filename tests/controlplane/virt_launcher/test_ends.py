# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a launcher ends when its guest panics, reboots or lets its watchdog expire. Real guests, under emulation."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.launch_plan import KERNEL_PANICKED, WATCHDOG_EXPIRED
from controlplane.domain import layout
from tests.controlplane.virt_launcher.launched import PLAN, connect, define, domain
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

PANICS = "#!/bin/sh\npanic\n"
REBOOTS = "#!/bin/sh\nreboot -f\n"
HANGS = "#!/bin/sh\nwatchdog -F -t 1 -T 2 /dev/watchdog &\nsleep 2\nkill -9 $!\n"
"""Serves its watchdog for a while and then stops."""
SHUT_DOWN = "the guest shut down"
NIGHTLY = pytest.mark.nightly
TERMINATE = {"rebootPolicy": "Terminate"}


@pytest.mark.parametrize(
    ("script", "watchdog", "fields", "code", "message"),
    [
        pytest.param(HANGS, "poweroff", {}, 1, WATCHDOG_EXPIRED, id="its watchdog switches it off"),
        pytest.param(HANGS, "shutdown", {}, 0, SHUT_DOWN, id="its watchdog presses the power button", marks=NIGHTLY),
        pytest.param(HANGS, "reset", TERMINATE, 0, SHUT_DOWN, id="its watchdog resets it", marks=NIGHTLY),
        pytest.param(REBOOTS, "reset", TERMINATE, 0, SHUT_DOWN, id="reboots", marks=NIGHTLY),
        pytest.param(PANICS, "reset", {}, 1, KERNEL_PANICKED, id="panics", marks=NIGHTLY),
    ],
)
async def test_a_guest_ends_its_own_run(
    images: Images,
    tmp_path: pathlib.Path,
    keep_pod: Callable[[LauncherPod], LauncherPod],
    script: str,
    watchdog: str,
    fields: dict[str, Any],
    code: int,
    message: str,
) -> None:
    (seed,) = PLAN.cloud_init
    plan = dataclasses.replace(PLAN, cloud_init=(dataclasses.replace(seed, user_data=script),))
    pod = keep_pod(LauncherPod(tmp_path, images, plan, {layout.image_mount("root"): images.guest}))
    pod.start()
    connection = await connect(pod)
    devices = {
        "watchdog": {"name": "dog", "i6300esb": {"action": watchdog}},
        "panicDevices": [{"model": "pvpanic"}],
    }
    guest = await define(pod, connection, domain(pod, devices, **fields))
    await guest.start()
    assert pod.wait() == code
    assert pod.termination_message == message
    await connection.close()
