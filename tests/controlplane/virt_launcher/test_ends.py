# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a launcher ends when its guest panics, reboots or lets its watchdog expire. Real guests, under emulation."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import KERNEL_PANICKED, WATCHDOG_EXPIRED, parse_report
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.domain.state import Life, State
from tests.controlplane.virt_launcher.launched import MAC, PLAN, VMI, connect, define
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

Keep = Callable[[LauncherPod], LauncherPod]
PANICS = "#!/bin/sh\necho c >/proc/sysrq-trigger\n"
REBOOTS = "#!/bin/sh\nreboot -f\n"
HANGS = "#!/bin/sh\nwatchdog -F -t 1 -T 2 /dev/watchdog &\nsleep 2\nkill -9 $!\n"
"""Serves its watchdog for a while and then stops."""


@pytest.fixture
def launch(images: Images, tmp_path: pathlib.Path, keep_pod: Keep) -> Callable[[str], LauncherPod]:
    """Return a function that starts a launcher whose guest runs a script."""

    def begin(script: str) -> LauncherPod:
        (seed,) = PLAN.cloud_init
        plan = dataclasses.replace(PLAN, cloud_init=(dataclasses.replace(seed, user_data=script),))
        pod = keep_pod(LauncherPod(tmp_path, images, plan, {layout.image_mount("root"): images.guest}))
        pod.start()
        return pod

    return begin


def a_domain(pod: LauncherPod, devices: dict[str, Any], **domain: Any) -> str:
    """Build the XML that virt-handler defines for a VMI with these devices."""
    vmi = copy.deepcopy(VMI)
    vmi["spec"]["domain"].update(domain)  # type: ignore[index]
    vmi["spec"]["domain"]["devices"].update(devices)  # type: ignore[index]
    report = parse_report((pod.run / layout.REPORT).read_bytes(), mounts={"root": layout.image_mount("root")})
    facts = Facts(pod_uid="pod", epoch=1, is_kvm=False, report=report, links={"default": Link(MAC, layout.TAP, 1500)})
    return render_text(build_domain(decode_vmi(vmi), facts))


@pytest.mark.nightly  # by day: e2e/test_lifecycle
@pytest.mark.parametrize(
    ("script", "devices", "domain", "code", "message"),
    [
        pytest.param(PANICS, {"panicDevices": [{"model": "isa"}]}, {}, 1, KERNEL_PANICKED, id="panics, ISA"),
        pytest.param(PANICS, {"panicDevices": [{"model": "pvpanic"}]}, {}, 1, KERNEL_PANICKED, id="panics, PCI"),
        pytest.param(REBOOTS, {}, {"rebootPolicy": "Terminate"}, 0, "the guest shut down", id="reboots"),
        pytest.param(
            HANGS,
            {"watchdog": {"name": "dog", "i6300esb": {"action": "poweroff"}}},
            {},
            1,
            WATCHDOG_EXPIRED,
            id="hangs, is switched off",
        ),
        pytest.param(
            HANGS,
            {"watchdog": {"name": "dog", "i6300esb": {"action": "shutdown"}}},
            {},
            0,
            "the guest shut down",
            id="hangs, is asked",
        ),
        pytest.param(
            HANGS,
            {"watchdog": {"name": "dog"}},
            {"rebootPolicy": "Terminate"},
            0,
            "the guest shut down",
            id="hangs, and a reset is its end",
        ),
    ],
)
async def test_a_guest_ends_its_own_run(
    launch: Callable[[str], LauncherPod],
    script: str,
    devices: dict[str, Any],
    domain: dict[str, Any],
    code: int,
    message: str,
) -> None:
    pod = launch(script)
    connection = await connect(pod)
    guest = await define(pod, connection, a_domain(pod, devices, **domain))
    await guest.start()

    assert pod.wait() == code
    assert pod.termination_message == message
    await connection.close()


async def test_a_guest_with_all_panic_device_models_starts_and_a_reset_ends_its_run(
    launch: Callable[[str], LauncherPod],
) -> None:
    pod = launch("#!/bin/sh\n")
    connection = await connect(pod)
    models = [{"model": model} for model in ("isa", "pvpanic", "hyperv")]
    guest = await define(pod, connection, a_domain(pod, {"panicDevices": models}, rebootPolicy="Terminate"))
    await guest.start()
    assert await guest.state() == State(Life.RUNNING, "booted")
    await guest.reset()
    assert pod.wait() == 0
    assert pod.termination_message == "the guest shut down"
    await connection.close()
