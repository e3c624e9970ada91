# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real launcher: its image, its user and its guest. Needs root. The guest runs under emulation."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
import pytest_asyncio
from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import EmptyDisk
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts
from controlplane.domain.observed import read_domain
from controlplane.domain.state import Life, State
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_launcher.guest.libvirtd_liveness import HUNG_SECONDS, PING_SECONDS
from controlplane.virt_launcher.logs import qemu_log
from tests.controlplane.domain.golden_domains import CASES
from tests.controlplane.virt_launcher.launched import PLAN, SCRIPT, UID, boot, connect, define, domain, until
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


@dataclasses.dataclass(frozen=True)
class Booted:
    pod: LauncherPod
    connection: Connection
    guest: Domain


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def booted(images: Images, tmp_path_factory: pytest.TempPathFactory, libvirt_loop: None) -> AsyncIterator[Booted]:
    """One guest for several tests. The last of them shuts it down."""
    pod = LauncherPod(tmp_path_factory.mktemp("booted"), images, PLAN, {layout.image_mount("root"): images.guest})
    pod.start()
    try:
        connection = await connect(pod)
        yield Booted(pod, connection, await boot(pod, connection))
        await connection.close()
    finally:
        pod.remove()


async def test_a_guest_boots_with_its_seed_and_its_lease(booted: Booted) -> None:
    pod, guest = booted.pod, booted.guest
    assert await guest.state() == State(Life.RUNNING, "booted")
    described = await guest.described(read_domain)
    assert (described.is_kvm, described.has_acpi) == (False, True)
    assert described.identity is not None
    assert (described.identity.uid, described.identity.epoch) == (UID, 1)
    await until(lambda: "user-data exited with 0" in pod.console, "end of the user's script", pod)
    for expected in ("seed says hello to named-by-seed", "10.0.2.2/24", "via 10.0.2.1", "nameserver 10.96.0.10"):
        assert expected in pod.console
    assert "sub.default.svc.cluster.local" in pod.console


async def press_enter_until_login(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Press Enter repeatedly, because a starting getty drops earlier input and login pauses after a wrong name."""
    while True:
        writer.write(b"\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await reader.readuntil(b"login: ")
                return


async def test_console_clients_talk_to_the_guest_one_after_another(booted: Booted) -> None:
    """The log has everything, with or without a client."""
    path = booted.pod.run / pathlib.Path(layout.SERIAL_SOCKET).relative_to(layout.RUN)
    for name in ("first", "second"):
        reader, writer = await asyncio.open_unix_connection(str(path))
        try:
            async with asyncio.timeout(240):
                await press_enter_until_login(reader, writer)
                writer.write(f"no-{name}\n".encode())
                await reader.readuntil(f"no-{name}".encode())
        finally:
            writer.close()
            await writer.wait_closed()
        await until(lambda: f"no-{name}" in booted.pod.console, "input in the log", booted.pod)  # noqa: B023


async def replace_libvirtd(pod: LauncherPod, signal_number: signal.Signals) -> float:
    """Send libvirtd a signal and wait for a new libvirtd, which finds the guest. Return the seconds until its start."""
    qemu = pod.pids("qemu-system-x86_64")
    (libvirtd,) = pod.pids("libvirtd")
    os.kill(libvirtd, signal_number)
    began = time.monotonic()
    await until(lambda: pod.pids("libvirtd") not in ([], [libvirtd]), "new libvirtd", pod)
    waited = time.monotonic() - began
    connection = await connect(pod)
    guest = await connection.guest(UID)
    assert guest is not None
    assert (await guest.state()).life is Life.RUNNING
    assert pod.pids("qemu-system-x86_64") == qemu
    await connection.close()
    return waited


async def test_a_killed_libvirtd_is_replaced_without_disturbing_the_guest(booted: Booted) -> None:
    await replace_libvirtd(booted.pod, signal.SIGKILL)


@pytest.mark.nightly  # by day: guest/test_libvirtd_restart
async def test_a_hung_libvirtd_is_replaced_without_disturbing_the_guest(booted: Booted) -> None:
    # Its last answer may be as old as a ping interval when the signal arrives.
    assert await replace_libvirtd(booted.pod, signal.SIGSTOP) > HUNG_SECONDS - PING_SECONDS - 1


async def test_a_guest_shuts_down_with_its_pod(booted: Booted) -> None:
    booted.pod.terminate()
    assert booted.pod.wait() == 0
    assert booted.pod.termination_message == "the guest shut down"
    assert "reboot: Power down" in booted.pod.console.splitlines()[-1], "the end of the console is not lost"


async def test_a_kernel_from_an_image_boots_after_a_failed_start(
    images: Images, tmp_path: pathlib.Path, keep_pod: Keep
) -> None:
    """With disks on every bus. QEMU's log has the reason of a failed start, also after it was flooded and cut."""
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

    guest = await connection.define(text)
    await guest.start()
    await until(lambda: "user-data exited" in pod.console, "end of the user's script", pod)
    assert "seed says hello to named-by-seed" in pod.console
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


@pytest.mark.parametrize("programs", [("qemu-system-x86_64",), ("libvirtd", "qemu-system-x86_64")], ids="+".join)
async def test_a_killed_qemu_fails_the_pod(pod: LauncherPod, programs: tuple[str, ...]) -> None:
    connection = await connect(pod)
    guest = await define(pod, connection)
    await guest.start(is_paused=True)
    for program in programs:
        for pid in pod.pids(program):
            os.kill(pid, signal.SIGKILL)
    assert pod.wait() == 1
    assert pod.termination_message == "QEMU ended unexpectedly: shut off, crashed"
    await connection.close()


async def test_a_reset_ends_the_run_of_a_guest_with_all_panic_device_models(pod: LauncherPod) -> None:
    """A panic that ends it: test_ends."""
    connection = await connect(pod)
    devices = {"panicDevices": [{"model": model} for model in ("isa", "pvpanic", "hyperv")]}
    guest = await define(pod, connection, domain(pod, devices, rebootPolicy="Terminate"))
    await guest.start()
    assert await guest.state() == State(Life.RUNNING, "booted")
    await guest.reset()
    assert pod.wait() == 0
    assert pod.termination_message == "the guest shut down"
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
    assert not (pod.run / layout.REPORT).exists()  # so nobody gets its socket
