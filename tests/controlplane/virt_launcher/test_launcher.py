# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real launcher: its image, its user and its guest. Needs root. The guest runs under emulation."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import time
import uuid
from collections.abc import Callable

import pytest
from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import EmptyDisk
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts
from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_launcher.guest.libvirtd_liveness import HUNG_SECONDS, PING_SECONDS
from controlplane.virt_launcher.logs import qemu_log
from tests.controlplane.domain.golden_domains import CASES
from tests.controlplane.virt_launcher.launched import PLAN, SCRIPT, UID, boot, connect, until
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

KERNEL_VMI = {
    "metadata": {"namespace": "default", "name": "kernel", "uid": UID},
    "spec": {
        "domain": {
            "memory": {"guest": "128Mi"},
            "cpu": {"sockets": 1, "cores": 2, "model": "Westmere"},
            "clock": {"utc": {}, "timer": {"rtc": {"tickPolicy": "catchup"}, "hpet": {"present": False}}},
            "firmware": {
                "kernelBoot": {
                    "kernelArgs": "console=ttyS0 quiet",
                    "container": {"image": "guest", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"},
                }
            },
            "devices": {
                "disks": [
                    {"name": "seed", "cdrom": {"bus": "sata"}},
                    {"name": "data", "disk": {"bus": "scsi"}},
                    {"name": "stick", "disk": {"bus": "usb"}},
                ],
            },
        },
        "volumes": [
            {"name": "seed", "cloudInitNoCloud": {"userData": SCRIPT}},
            {"name": "data", "emptyDisk": {"capacity": "1Gi"}},
            {"name": "stick", "emptyDisk": {"capacity": "1Gi"}},
        ],
    },
}
KERNEL_PLAN = dataclasses.replace(
    PLAN, container_disks=(), dhcp=None, empty_disks=(EmptyDisk("data", 1 << 30), EmptyDisk("stick", 1 << 30))
)
Keep = Callable[[LauncherPod], LauncherPod]


async def test_a_guest_boots_and_shuts_down_with_its_pod(pod: LauncherPod) -> None:
    connection = await connect(pod)
    guest = await boot(pod, connection)
    assert await guest.state() == State(Life.RUNNING, "booted")
    described = await guest.described(read_domain)
    assert described.identity is not None
    assert (described.is_kvm, described.has_acpi, described.identity.uid, described.identity.epoch) == (
        False,
        True,
        UID,
        1,
    )
    await until(lambda: "user-data exited with 0" in pod.console, "end of the user's script", pod)
    for expected in ("seed says hello to named-by-seed", "10.0.2.2/24", "via 10.0.2.1", "nameserver 10.96.0.10"):
        assert expected in pod.console
    assert "sub.default.svc.cluster.local" in pod.console
    pod.terminate()
    assert pod.wait() == 0
    assert pod.termination_message == "the guest shut down"
    assert "reboot: Power down" in pod.console.splitlines()[-1]  # nothing of the console's end is lost
    await connection.close()


async def test_a_kernel_boots_from_an_image_with_disks_on_every_bus(
    images: Images, tmp_path: pathlib.Path, keep_pod: Keep
) -> None:
    pod = keep_pod(LauncherPod(tmp_path, images, KERNEL_PLAN, {layout.KERNEL_BOOT: images.guest}))
    pod.start()
    connection = await connect(pod)
    facts = Facts(pod_uid="pod", epoch=1, is_kvm=False)
    guest = await connection.define(render_text(build_domain(decode_vmi(KERNEL_VMI), facts)))
    await guest.start()
    await until(lambda: "user-data exited" in pod.console, "end of the user's script", pod)
    assert "seed says hello to named-by-seed" in pod.console
    pod.terminate()
    assert pod.wait() == 0
    await connection.close()


async def test_a_flooded_qemu_log_is_cut_and_a_failed_start_still_has_its_reason(
    images: Images, tmp_path: pathlib.Path, keep_pod: Keep
) -> None:
    pod = keep_pod(LauncherPod(tmp_path, images, KERNEL_PLAN, {layout.KERNEL_BOOT: images.guest}))
    pod.start()
    connection = await connect(pod)
    text = render_text(build_domain(decode_vmi(KERNEL_VMI), Facts(pod_uid="pod", epoch=1, is_kvm=False)))
    guest = await connection.define(text.replace("/boot/vmlinuz", "/boot/no-such-kernel"))
    log = pod.run / pathlib.Path(layout.qemu_log(UID)).relative_to(layout.RUN)
    for _unused in range(2):
        with pytest.raises(HypervisorError, match="no-such-kernel"):
            await guest.start()
        with log.open("ab") as file:
            file.write(b"qemu-system-x86_64: a guest did what it should not\n" * 200_000)
        await until(lambda: log.stat().st_blocks * 512 <= qemu_log.LIMIT_BYTES, "log that was cut", pod)
    await connection.close()


async def test_libvirt_defines_every_golden_domain(pod: LauncherPod) -> None:
    """libvirt and QEMU check more than the schema does. Without KVM here, so with type qemu."""
    connection = await connect(pod)
    for case in CASES:
        built = dataclasses.replace(case.build(), type="qemu", name=case.name)
        text = render_text(built).replace(built.uuid, str(uuid.uuid5(uuid.NAMESPACE_DNS, case.name)))
        guest = await connection.define(text)
        assert (await guest.state()).life is Life.SHUT_OFF
    await connection.close()


async def outlive_libvirtd(pod: LauncherPod, signal_number: signal.Signals) -> float:
    """Boot a guest and send its libvirtd a signal: a new libvirtd finds the guest and can shut it down.

    Return the seconds until the new libvirtd started.
    """
    connection = await connect(pod)
    await boot(pod, connection)
    qemu = pod.pids("qemu-system-x86_64")
    (libvirtd,) = pod.pids("libvirtd")
    os.kill(libvirtd, signal_number)
    began = time.monotonic()
    await until(lambda: pod.pids("libvirtd") not in ([], [libvirtd]), "new libvirtd", pod)
    waited = time.monotonic() - began
    again = await connect(pod)
    guest = await again.guest(UID)
    assert guest is not None
    assert (await guest.state()).life is Life.RUNNING
    assert pod.pids("qemu-system-x86_64") == qemu
    pod.terminate()
    assert pod.wait() == 0
    await connection.close()
    await again.close()
    return waited


async def test_a_killed_libvirtd_does_not_disturb_the_guest(pod: LauncherPod) -> None:
    await outlive_libvirtd(pod, signal.SIGKILL)


async def test_a_killed_qemu_fails_the_pod(pod: LauncherPod) -> None:
    connection = await connect(pod)
    await boot(pod, connection)
    (qemu,) = pod.pids("qemu-system-x86_64")
    os.kill(qemu, signal.SIGKILL)
    assert pod.wait() == 1
    assert pod.termination_message == "QEMU ended unexpectedly: shut off, crashed"
    await connection.close()


async def test_a_hung_libvirtd_is_replaced_without_disturbing_the_guest(pod: LauncherPod) -> None:
    waited = await outlive_libvirtd(pod, signal.SIGSTOP)
    # Its last answer may be as old as a ping interval when the signal arrives.
    assert waited > HUNG_SECONDS - PING_SECONDS - 1


async def test_libvirtd_and_qemu_killed_together_fail_the_pod(pod: LauncherPod) -> None:
    connection = await connect(pod)
    await boot(pod, connection)
    for pid in (*pod.pids("libvirtd"), *pod.pids("qemu-system-x86_64")):
        os.kill(pid, signal.SIGKILL)
    assert pod.wait() == 1
    assert pod.termination_message == "QEMU ended unexpectedly: shut off, crashed"
    await connection.close()


async def test_a_pod_terminated_before_the_start_ends_at_once(pod: LauncherPod) -> None:
    await until(pod.socket.exists, "libvirt socket", pod)
    pod.terminate()
    assert pod.wait() == 1
    assert pod.termination_message == "the Pod was ended before its guest ran"


async def test_an_unusable_image_fails_the_pod_with_a_reason(
    images: Images, tmp_path: pathlib.Path, keep_pod: Keep
) -> None:
    bad = tmp_path / "bad"
    (bad / "disk").mkdir(parents=True)
    (bad / "disk" / "disk.img").symlink_to("/etc/passwd")
    pod = keep_pod(LauncherPod(tmp_path, images, PLAN, {layout.image_mount("root"): bad}))
    pod.start()
    assert pod.wait() == 1
    assert pod.termination_message.startswith("InvalidDisk: volume root: cannot open '/disk/disk.img'")
    assert "symbolic link" in pod.termination_message
    assert not pod.socket.exists()
