# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates the disks of a guest, and the report about them. Runs once, while libvirtd starts.

The report is written last and atomically: virt-node looks for it before it opens libvirtd's socket for virt-handler.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterable

from controlplane.api.launch_plan import (
    CloudInit,
    ContainerDisk,
    EmptyDisk,
    ImageFile,
    LauncherReport,
    LaunchPlan,
    render_report,
)
from controlplane.domain import layout
from controlplane.virt_launcher.disks.claim import prepare_claim
from controlplane.virt_launcher.disks.image import Image, find_image
from controlplane.virt_launcher.disks.seed import build_seed
from controlplane.virt_launcher.errors import PreparationError
from controlplane.virt_launcher.files import write_file

_QEMU_IMG_SECONDS = 60
_QEMU_IMG_CPU_SECONDS = 30
_QEMU_IMG_MEMORY_BYTES = 1 << 30
_TEXT_LIMIT = 500


def prepare(plan: LaunchPlan) -> LauncherReport:
    """Create every disk of the plan. PreparationError names the first one that fails, and why."""
    os.makedirs(layout.DISKS, mode=0o750, exist_ok=True)
    images = [_find(disk, plan.container_disk_limit_bytes) for disk in plan.container_disks]
    overlays = [
        _begin_overlay(image, layout.overlay(disk.volume))
        for disk, image in zip(plan.container_disks, images, strict=True)
    ]
    for empty in plan.empty_disks:
        _make_sparse(empty)
    for seed in plan.cloud_init:
        _make_seed(seed)
    for disk, process in zip(plan.container_disks, overlays, strict=True):
        finish_overlay(disk.volume, process)
    claims = [prepare_claim(claim) for claim in plan.claim_disks]
    created = [layout.overlay(disk.volume) for disk in plan.container_disks]
    created += [layout.sparse_disk(empty.volume) for empty in plan.empty_disks]
    image_files = [
        ImageFile(disk.volume, image.path, image.format)
        for disk, image in zip(plan.container_disks, images, strict=True)
    ]
    return LauncherReport(
        tuple(image_files),
        direct_io=can_do_direct_io([*created, *claims, *(image.path for image in images)]),
        block_claims=tuple(claim.volume for claim in plan.claim_disks if claim.is_block),
    )


def write_report(report: LauncherReport, path: str) -> None:
    """Write the report atomically."""
    write_file(f"{path}.new", render_report(report).encode())
    os.replace(f"{path}.new", path)


def can_do_direct_io(paths: Iterable[str]) -> bool:
    """Test whether every file can be opened with direct I/O."""
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
        except OSError:
            return False
    return True


def _find(disk: ContainerDisk, limit_bytes: int) -> Image:
    return find_image(disk.volume, layout.image_mount(disk.volume), disk.path, limit_bytes)


def _begin_overlay(image: Image, path: str) -> subprocess.Popen[bytes]:
    """Begin to create an overlay. qemu-img gets the format and never probes it, and has resource limits."""
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", image.format, "-b", image.path, path]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C"},
        preexec_fn=_limit,  # noqa: PLW1509 - there is no other thread yet
    )


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_QEMU_IMG_MEMORY_BYTES, _QEMU_IMG_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_QEMU_IMG_CPU_SECONDS, _QEMU_IMG_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def finish_overlay(volume: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for an overlay. PreparationError with qemu-img's message."""
    try:
        _unused, errors = process.communicate(timeout=_QEMU_IMG_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        message = f"volume {volume}: qemu-img did not end within {_QEMU_IMG_SECONDS} s"
        raise PreparationError("InvalidDisk", message) from error
    if process.returncode:
        text = errors.decode(errors="replace").strip()[:_TEXT_LIMIT] or f"exit code {process.returncode}"
        raise PreparationError("InvalidDisk", f"volume {volume}: qemu-img cannot use the image: {text}")


def _make_sparse(plan: EmptyDisk) -> None:
    try:
        write_file(layout.sparse_disk(plan.volume), b"", size=plan.capacity_bytes)
    except OSError as error:
        message = f"volume {plan.volume}: cannot create a disk of {plan.capacity_bytes} bytes: {error.strerror}"
        raise PreparationError("DiskTooLarge", message) from error


def _make_seed(plan: CloudInit) -> None:
    write_file(layout.cloud_init_iso(plan.volume), build_seed(plan))
