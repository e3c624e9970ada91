# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lower bound of a migration: the same guest moves from one libvirtd to another on this machine, without our
processes.

Two launchers without a cluster, with the image of the launcher. Both share a directory for the target's sockets, so
QEMU connects to QEMU. libvirtd gets the QEMU capabilities that the launchers of a node get, and migrates by itself. The
domain is built from an instance and a launch plan of the cluster, so it is the same guest. The launchers run in the
control groups of Pods on two nodes, with the CPU share of the guest's Pod: outside, they would get more CPU than all
Pods together, which is no fair bound on a busy machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
from libvirt_domain.codec import render_text

from controlplane.api.launch_plan import LaunchPlan, parse_report
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain import layout
from controlplane.domain.builders.disk import device_names
from controlplane.domain.builders.domain import build_domain
from controlplane.domain.builders.facts import Facts, Link
from controlplane.domain.migratable import sent_disks
from controlplane.virt_launcher.capabilities import without_each_property
from tests.bench.ticks import Ticks
from tests.controlplane.virt_launcher.launcher_pod import Images, LauncherPod

SETTLED_SECONDS = 3.0
"""A guest that has just reported ready is still loading."""
LIMIT_SECONDS = 120.0
TICKS = 20
SERIAL_LOG = Path(layout.SERIAL_LOG).name
_AT = f"{layout.RUN}/{layout.MIGRATION_DIRECTORY}"


@dataclass(frozen=True)
class Moved:
    """Durations of one migration in seconds."""

    total: float
    stood: float
    """Downtime by the ticks of the guest."""
    by_libvirt: float
    """Downtime by libvirt, which does not count the time after its last step."""


@dataclass(frozen=True)
class Place:
    """The control group of a launcher, like that of a Pod."""

    group: str
    """The parent of its control group."""
    cpu_shares: int


@dataclass
class Bare:
    """Moves a guest repeatedly, each time between two new launchers."""

    images: Images
    home: Path
    vmi: VirtualMachineInstance
    plan: LaunchPlan
    source: Place
    target: Place
    rounds: int = 0
    capabilities: dict[str, str] = field(default_factory=dict)
    """libvirt's capability cache by file name, as the libvirtd of the first launcher wrote it."""

    def warm_up(self) -> None:
        """Let libvirtd probe QEMU's capabilities, as a container on each node does."""
        _unused = self.move()
        cache = self._home("source").joinpath("run", *layout.CAPABILITY_CACHE)
        self.capabilities = {path.name: without_each_property(path.read_text()) for path in cache.glob("*.xml")}

    def move(self) -> Moved:
        """Boot the guest and move it."""
        self.rounds += 1
        source, target = self._launcher("source", self.source), self._launcher("target", self.target)
        try:
            for launcher in (source, target):
                self._begin(launcher)
            source_libvirt, target_libvirt = (_dial(launcher) for launcher in (source, target))
            domain = source_libvirt.defineXML(self._domain(source))
            domain.create()
            _until(lambda: "tick" in source.console, source, "a guest that ticks")
            time.sleep(SETTLED_SECONDS)
            return self._measure(domain, target_libvirt, source, target)
        finally:
            for launcher in (source, target):
                launcher.remove()

    def _measure(self, domain: Any, target_libvirt: Any, source: LauncherPod, target: LauncherPod) -> Moved:
        logs = [launcher.run / SERIAL_LOG for launcher in (source, target)]
        names = device_names(self.vmi)
        disks = sorted(names[disk] for disk in sent_disks(self.vmi) if disk in names)
        parameters = {
            libvirt.VIR_MIGRATE_PARAM_URI: f"unix://{layout.migration_socket('memory')}",
            libvirt.VIR_MIGRATE_PARAM_DISKS_URI: f"unix://{layout.migration_socket('disks')}",
            libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS: disks,
        }
        flags = libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_NON_SHARED_INC
        with Ticks(lambda: logs) as ticks:
            began = time.monotonic()
            moved = domain.migrate3(target_libvirt, parameters, flags)
            total = time.monotonic() - began
            _until(lambda: ticks.count(logs[1]) > TICKS, target, "a guest that ticks on")
            return Moved(total, ticks.gap(*logs), downtime_of(moved))

    def _home(self, name: str) -> Path:
        return self.home / f"{name}-{self.rounds}"

    def _launcher(self, name: str, place: Place) -> LauncherPod:
        home = self._home(name)
        home.mkdir()
        sockets = self.home / f"sockets-{self.rounds}"
        sockets.mkdir(exist_ok=True)
        os.chown(sockets, layout.UID, layout.UID)
        mounts = {layout.image_mount("root"): self.images.guest}
        shared = {_AT: sockets}
        return LauncherPod(home, self.images, self.plan, mounts, shared, place.group, place.cpu_shares)

    def _begin(self, pod: LauncherPod) -> None:
        pod.start()
        pod.make_network(self._gateway())
        directory = pod.run
        for name in layout.CAPABILITY_CACHE if self.capabilities else ():
            directory /= name
            directory.mkdir(exist_ok=True)
            os.chown(directory, layout.UID, layout.UID)
        for name, text in self.capabilities.items():
            (directory / name).write_text(text)
            os.chown(directory / name, layout.UID, layout.UID)

    def _gateway(self) -> str:
        dhcp = self.plan.dhcp
        assert dhcp is not None
        return f"{dhcp.router}/{dhcp.address.partition('/')[2]}"

    def _domain(self, pod: LauncherPod) -> str:
        _until((pod.run / layout.REPORT).exists, pod, "a report")
        mounts = {"root": layout.image_mount("root")}
        report = parse_report((pod.run / layout.REPORT).read_bytes(), mounts=mounts)
        assert self.plan.dhcp is not None
        links = {"default": Link(self.plan.dhcp.mac, layout.TAP, 1500)}
        facts = Facts(pod_uid="pod", epoch=1, is_kvm=False, report=report, links=links)
        return render_text(build_domain(self.vmi, facts))


def downtime_of(domain: Any) -> float:
    """Return the downtime of a migrated guest, as libvirt reports it, in seconds."""
    stats = domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED)
    return float(stats["downtime"]) / 1e3


def _dial(pod: LauncherPod) -> Any:
    _until(pod.socket.exists, pod, "a libvirtd")
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            return libvirt.open(f"qemu+unix:///session?socket={pod.socket}")
        except libvirt.libvirtError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _until(is_so: Callable[[], object], pod: LauncherPod, what: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not is_so():
        if time.monotonic() > deadline or pod.process is None or pod.process.poll() is not None:
            raise AssertionError(f"no {what}\n--- log\n{pod.log}\n--- console\n{pod.console[-2000:]}")
        time.sleep(0.01)
