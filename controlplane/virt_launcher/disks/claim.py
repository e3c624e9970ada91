# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk on a claim: created if the volume is empty, and extended with its claim.

Other software may fill a volume. disk.img is a disk only if it is a regular file, and its content is never read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from controlplane.api.launch_plan import ClaimDisk
from controlplane.domain import layout
from controlplane.virt_launcher.errors import PreparationError

MIB = 1024 * 1024
RESERVE_BYTES = 128 * 1024
"""Bytes that stay free on the volume, as upstream: the file system needs space for a file that fills it."""
BLOCK_BYTES = 4096
"""With direct I/O, QEMU refuses a disk whose size is no multiple of the block size of the storage, such as 7G."""
LEAST_SHARE = 0.9
"""The file system uses a part of a volume's size. A volume with less than 90 % of its claim's size is an error."""


def shared_directories(claims: Iterable[ClaimDisk]) -> tuple[str, ...]:
    """Return the mounts of claims that other nodes can mount at the same time. A block device is not a directory."""
    return tuple(layout.claim_mount(claim.volume) for claim in claims if claim.is_shared and not claim.is_block)


def prepare_claim(plan: ClaimDisk) -> str:
    """Create or check the disk; return its path. Raises PreparationError with what is wrong with the volume."""
    return _device(plan) if plan.is_block else _file(plan)


def _device(plan: ClaimDisk) -> str:
    path = layout.claim_device(plan.volume)
    flags = os.O_RDONLY if plan.is_read_only else os.O_RDWR
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        because = str(error.strerror)
        if isinstance(error, PermissionError):
            because += "; the Pod's user must own devices: set device_ownership_from_security_context in containerd"
        text = f"volume {plan.volume}: cannot open its device: {because}"
        raise PreparationError("InvalidDisk", text) from error
    try:
        if not stat.S_ISBLK(os.fstat(descriptor).st_mode):
            raise PreparationError("InvalidDisk", f"volume {plan.volume}: its device is not a block device")
    finally:
        os.close(descriptor)
    return path


def _file(plan: ClaimDisk) -> str:
    path = layout.claim_file(plan.volume)
    flags = os.O_RDONLY if plan.is_read_only else os.O_RDWR | os.O_CREAT
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o660)
    except FileNotFoundError as error:
        text = f"volume {plan.volume}: has no disk.img, and none can be created because it is read-only"
        raise PreparationError("InvalidDisk", text) from error
    except OSError as error:
        text = f"volume {plan.volume}: cannot open disk.img: {error.strerror}"
        raise PreparationError("InvalidDisk", text) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PreparationError("InvalidDisk", f"volume {plan.volume}: disk.img is not a plain file")
        _extend(plan, descriptor, status)
    finally:
        os.close(descriptor)
    return path


def _extend(plan: ClaimDisk, descriptor: int, status: os.stat_result) -> None:
    """Extend the disk, sparsely, to the claim's size or the free space. It never shrinks."""
    if plan.is_read_only or (plan.is_shared and status.st_size):  # another process may have it open
        return
    volume = os.fstatvfs(descriptor)
    free = volume.f_bavail * volume.f_frsize + status.st_blocks * 512 - RESERVE_BYTES
    size = min(plan.size_bytes, free) // MIB * MIB
    if not status.st_size and size < max(plan.size_bytes * LEAST_SHARE, MIB):
        os.unlink(layout.claim_file(plan.volume))
        text = f"volume {plan.volume}: has room for {max(free, 0)} bytes, its claim asks for {plan.size_bytes}"
        raise PreparationError("DiskTooLarge", text)
    size = max(size, -(-status.st_size // BLOCK_BYTES) * BLOCK_BYTES)
    if size > status.st_size:
        os.ftruncate(descriptor, size)
