# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM in a launcher Pod without a cluster: the parts of virt-controller and virt-handler."""

from __future__ import annotations

import asyncio
import copy
import re
import time
from collections.abc import Callable
from typing import Any

from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import CloudInit, ContainerDisk, Dhcp, EmptyDisk, LaunchPlan, parse_report
from controlplane.api.objects.decode import decode_vmi
from controlplane.domain import layout
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError
from tests.controlplane.virt_launcher.launcher_pod import LauncherPod

UID = "6a1a24a1-4061-4607-8bf4-a3963d0c5895"
MAC = "02:fd:dc:9e:5b:fb"
SCRIPT = "#!/bin/sh\necho seed says hello to $(hostname)\nip addr; ip route; cat /etc/resolv.conf\n"
VMI: dict[str, Any] = {
    "metadata": {"namespace": "default", "name": "vm", "uid": UID},
    "spec": {
        "domain": {
            "cpu": {"sockets": 1, "maxSockets": 4},
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
PLAN = LaunchPlan(
    domain=UID,
    title="default/vm",
    grace_period_seconds=30,
    container_disk_limit_bytes=1 << 30,
    container_disks=(ContainerDisk("root"),),
    empty_disks=(EmptyDisk("data", 1 << 30),),
    cloud_init=(CloudInit("seed", '{"instance-id": "one", "local-hostname": "named-by-seed"}', user_data=SCRIPT),),
    dhcp=Dhcp(layout.BRIDGE, MAC, "10.0.2.2/24", "10.0.2.1", None, "named-by-dhcp", "sub.default.svc"),
)


def last_count(console: str) -> int:
    """Return the last number that the guest has counted on its console."""
    return max(map(int, re.findall(r"virtops-guest: counter ([0-9]+)", console)), default=0)


async def until(condition: Callable[[], object], what: str, pod: LauncherPod, seconds: float = 240) -> None:
    """Poll a condition outside of this process. A boot takes three seconds on an idle machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline or pod.process is None or pod.process.poll() is not None:
            raise AssertionError(f"no {what}\n--- log\n{pod.log}\n--- console\n{pod.console}")
        await asyncio.sleep(0.01)


async def connect(pod: LauncherPod) -> Connection:
    """Do what virt-node does: wait for the report, then for libvirtd's socket."""
    await until((pod.run / layout.REPORT).exists, "report", pod)
    await until(pod.socket.exists, "libvirt socket", pod)
    while True:
        try:
            return await open_connection(socket_uri(str(pod.socket)))
        except HypervisorError:
            await asyncio.sleep(0.01)


def domain(pod: LauncherPod, devices: dict[str, Any] | None = None, **fields: Any) -> str:
    """Build the domain XML that virt-handler defines. devices, fields: of spec.domain, other than in VMI."""
    mounts = {"root": layout.image_mount("root")}
    report = parse_report((pod.run / layout.REPORT).read_bytes(), mounts=mounts)
    facts = Facts(pod_uid="pod", epoch=1, is_kvm=False, report=report, links={"default": Link(MAC, layout.TAP, 1500)})
    vmi = copy.deepcopy(VMI)
    vmi["spec"]["domain"].update(fields)
    vmi["spec"]["domain"]["devices"].update(devices or {})
    return render_text(build_domain(decode_vmi(vmi), facts))


async def define(pod: LauncherPod, connection: Connection, text: str = "") -> Domain:
    """Do what virt-handler does before the start."""
    pod.make_network("10.0.2.1/24")
    return await connection.define(text or domain(pod))


async def boot(pod: LauncherPod, connection: Connection, text: str = "") -> Domain:
    """Do what virt-handler does, and wait until the guest is up."""
    guest = await define(pod, connection, text)
    await guest.start()
    await until(lambda: "virtops-guest: ready" in pod.console, "guest that is ready", pod)
    return guest
