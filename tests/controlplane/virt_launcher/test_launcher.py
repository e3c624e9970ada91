# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher as it will run: its image, its user, its guest. Needs root; the guest runs under emulation."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import re
import signal
import time
import uuid
from collections.abc import Callable

import pytest

from controlplane.api.launch_plan import CloudInit, ContainerDisk, Dhcp, EmptyDisk, Plan, parse_report
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.domain.codec import render_text
from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.guest import Guest
from controlplane.virt_launcher import qemu_log
from controlplane.virt_launcher.pulse import PATIENCE_SECONDS, PING_SECONDS
from tests.controlplane.domain.golden_domains import CASES
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod

pytestmark = [pytest.mark.guest, pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

IDLE_SECONDS = 15.0
UID = "6a1a24a1-4061-4607-8bf4-a3963d0c5895"
MAC = "02:fd:dc:9e:5b:fb"
SCRIPT = "#!/bin/sh\necho seed says hello to $(hostname)\nip addr; ip route; cat /etc/resolv.conf\n"
VMI = {
    "metadata": {"namespace": "default", "name": "vm", "uid": UID},
    "spec": {
        "domain": {
            "memory": {"guest": "128Mi"},
            "devices": {
                "rng": {},
                "disks": [
                    {"name": "root", "disk": {"bus": "virtio"}},
                    {"name": "seed", "disk": {"bus": "virtio"}},
                    {"name": "data", "disk": {"bus": "sata"}},
                ],
                "interfaces": [{"name": "default", "masquerade": {}}],
            },
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [
            {"name": "root", "containerDisk": {"image": "guest"}},
            {"name": "seed", "cloudInitNoCloud": {"userData": SCRIPT}},
            {"name": "data", "emptyDisk": {"capacity": "1Gi"}},
        ],
    },
}
PLAN = Plan(
    domain=UID,
    title="default/vm",
    grace_period_seconds=30,
    container_disk_limit_bytes=1 << 30,
    container_disks=(ContainerDisk("root"),),
    empty_disks=(EmptyDisk("data", 1 << 30),),
    cloud_init=(CloudInit("seed", '{"instance-id": "one", "local-hostname": "named-by-seed"}', user_data=SCRIPT),),
    dhcp=Dhcp(layout.BRIDGE, MAC, "10.0.2.2/24", "10.0.2.1", None, "named-by-dhcp", ("sub.default.svc.cluster.local",)),
)
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


@pytest.fixture
def pod(images: Images, tmp_path: pathlib.Path, keep_pod: Keep) -> LauncherPod:
    made = keep_pod(LauncherPod(tmp_path, images, PLAN, {layout.image_mount("root"): images.guest}))
    made.start()
    return made


async def until(condition: Callable[[], object], what: str, pod: LauncherPod, seconds: float = 60) -> None:
    """Wait for something outside of this process, which tells nobody when it happens."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline or pod.process is None or pod.process.poll() is not None:
            pytest.fail(f"no {what}\n--- log\n{pod.log}\n--- console\n{pod.console}")
        await asyncio.sleep(0.01)


async def connect(pod: LauncherPod) -> Connection:
    await until(pod.socket.exists, "libvirt socket", pod)
    while True:
        try:
            return await open_connection(socket_uri(str(pod.socket)))
        except HypervisorError:
            await asyncio.sleep(0.01)


async def define(pod: LauncherPod, connection: Connection) -> Guest:
    """Do virt-handler's part, up to the start."""
    mounts = {"root": layout.image_mount("root")}
    report = parse_report((pod.run / layout.REPORT).read_bytes(), mounts=mounts)
    pod.make_network("10.0.2.1/24")
    facts = Facts(pod_uid="pod", epoch=1, is_kvm=False, report=report, links={"default": Link(MAC, layout.TAP, 1500)})
    return await connection.define(render_text(build_domain(decode_vmi(VMI), facts)))


async def boot(pod: LauncherPod, connection: Connection) -> Guest:
    """Do virt-handler's part, and wait until the guest is up."""
    guest = await define(pod, connection)
    await guest.start()
    await until(lambda: "virtops-guest: ready" in pod.console, "guest that is ready", pod)
    return guest


async def test_a_guest_boots_and_goes_when_the_pod_is_told_to(pod: LauncherPod) -> None:
    connection = await connect(pod)
    guest = await boot(pod, connection)
    assert await guest.state() == State(Life.RUNNING, "booted")
    seen = read_domain(await guest.xml())
    assert seen.identity is not None
    assert (seen.is_kvm, seen.has_acpi, seen.identity.uid, seen.identity.epoch) == (False, True, UID, 1)
    await until(lambda: "user-data exited with 0" in pod.console, "end of the user's script", pod)
    for expected in ("seed says hello to named-by-seed", "10.0.2.2/24", "via 10.0.2.1", "nameserver 10.96.0.10"):
        assert expected in pod.console
    assert "sub.default.svc.cluster.local" in pod.console
    pod.terminate()
    assert pod.wait() == 0
    assert pod.termination_message == "the guest shut down"
    assert "reboot: Power down" in pod.console.splitlines()[-1]  # nothing of the console is lost at the end
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


async def test_a_flooded_log_of_qemu_is_cut_and_a_failed_start_still_says_why(
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
    """The real one with the real QEMU, which checks more than the schema. Without KVM here, so of the other type."""
    connection = await connect(pod)
    for case in CASES:
        built = dataclasses.replace(case.build(), type="qemu", name=case.name)
        text = render_text(built).replace(built.uuid, str(uuid.uuid5(uuid.NAMESPACE_DNS, case.name)))
        guest = await connection.define(text)
        assert (await guest.state()).life is Life.SHUT_OFF
    await connection.close()


async def outlive_libvirtd(pod: LauncherPod, signal_number: signal.Signals) -> float:
    """Boot a guest and send its libvirtd a signal: another one comes and finds the guest, which goes when it is asked.

    Return the seconds until there was another one.
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


async def test_libvirtd_may_die_and_the_guest_does_not_notice(pod: LauncherPod) -> None:
    await outlive_libvirtd(pod, signal.SIGKILL)


def sleeps(pod: LauncherPod) -> dict[str, int]:
    """Count how often each of the launcher's own threads has gone to sleep, which is as often as it woke up."""
    found: dict[str, int] = {}
    for program in ("dumb-init", "python3", "libvirtd"):
        for pid in pod.pids(program):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                row = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.MULTILINE)
                assert row is not None
                found[f"{program} {task.name}"] = int(row[1])
    return found


async def test_an_idle_launcher_wakes_at_most_twice_a_second(pod: LauncherPod) -> None:
    """In all: init, supervisor and libvirtd. The guest is paused, so that it writes nothing."""
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    await asyncio.sleep(IDLE_SECONDS)  # whoever is busy with the start comes to rest
    before = sleeps(pod)
    await asyncio.sleep(IDLE_SECONDS)
    after = sleeps(pod)
    woken = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    await connection.close()
    assert {name.partition(" ")[0] for name in after} == {"dumb-init", "python3", "libvirtd"}
    assert sum(woken.values()) <= 2 * IDLE_SECONDS, woken


async def test_a_killed_qemu_fails_the_pod(pod: LauncherPod) -> None:
    connection = await connect(pod)
    await boot(pod, connection)
    (qemu,) = pod.pids("qemu-system-x86_64")
    os.kill(qemu, signal.SIGKILL)
    assert pod.wait() == 1
    assert pod.termination_message == "QEMU ended unexpectedly: shut off, crashed"
    await connection.close()


async def test_a_libvirtd_that_hangs_is_replaced_and_the_guest_does_not_notice(pod: LauncherPod) -> None:
    waited = await outlive_libvirtd(pod, signal.SIGSTOP)
    # It may have answered for the last time just before it was asked again: while the guest was still booting.
    assert waited > PATIENCE_SECONDS - PING_SECONDS - 1


async def test_libvirtd_and_qemu_killed_together_fail_the_pod(pod: LauncherPod) -> None:
    connection = await connect(pod)
    await boot(pod, connection)
    for pid in (*pod.pids("libvirtd"), *pod.pids("qemu-system-x86_64")):
        os.kill(pid, signal.SIGKILL)
    assert pod.wait() == 1
    assert pod.termination_message == "QEMU ended unexpectedly: shut off, crashed"
    await connection.close()


async def test_a_pod_that_goes_before_its_guest_ran_does_not_wait(pod: LauncherPod) -> None:
    await until(pod.socket.exists, "libvirt socket", pod)
    began = time.monotonic()
    pod.terminate()
    assert pod.wait() == 1
    assert pod.termination_message == "the Pod was ended before its guest ran"
    assert time.monotonic() - began < 5


async def test_an_image_that_cannot_be_attached_fails_the_pod_with_a_reason(
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
