# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds and checks the image file of a containerDisk. It does not trust names, links and headers of the tenant's image.

It reads only headers, by a bounded parser. QEMU opens an image that passed the checks, in the launcher's sandbox.
"""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass
from typing import Literal

from kubevirt_api.names import CONTAINER_DISK_LIMIT

from controlplane.virt_launcher.errors import PreparationError

DIRECTORY = "disk"
_SCAN_LIMIT = 1000
_HEADER_BYTES = 112
_QCOW2 = b"QFI\xfb"
_FOREIGN = {
    b"KDMV": "a VMDK image",
    b"COWD": "a VMDK image",
    b"# Disk DescriptorFile"[:8]: "a VMDK description",
    b"vhdxfile": "a VHDX image",
    b"conectix": "a VHD image",
    b"<<< QEMU"[:8]: "a VDI image",
    b"<<< Orac": "a VDI image",
    b"\x1f\x8b\x08": "gzip-compressed",
    b"\xfd7zXZ\x00": "xz-compressed",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
}
_INCOMPATIBLE_CORRUPT = 1 << 1
_INCOMPATIBLE_DATA_FILE = 1 << 2


@dataclass(frozen=True, slots=True)
class Image:
    """An image file that passed the checks."""

    path: str
    format: Literal["raw", "qcow2"]
    virtual_bytes: int


def find_image(volume: str, mount: str, path: str, limit_bytes: int) -> Image:
    """Find the image of a containerDisk and check it. PreparationError says what is wrong with it.

    mount: path of the mounted container image. path: absolute path in the image, "" for the only file in /disk.
    limit_bytes: limit of the virtual disk, because the guest can write all of it. Symbolic links are refused, because
    they could lead out of the image.
    """
    names = path.strip("/").split("/") if path else [DIRECTORY]
    if {"", ".", ".."} & set(names):
        raise PreparationError("InvalidDisk", f"volume {volume}: {path!r} is not a plain absolute path")
    root = os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not path:
            names.append(_only_file(volume, root))
        descriptor = _open_beneath(volume, root, names)
    finally:
        os.close(root)
    try:
        image = _check(volume, descriptor, "/".join([mount, *names]))
    finally:
        os.close(descriptor)
    if image.virtual_bytes > limit_bytes:
        message = (
            f"volume {volume}: the image's disk has {image.virtual_bytes} bytes, at most {limit_bytes} are attached "
            f"(annotation {CONTAINER_DISK_LIMIT} of the KubeVirt object)"
        )
        raise PreparationError("DiskTooLarge", message)
    return image


def _only_file(volume: str, root: int) -> str:
    """Return the name of the one file in /disk."""
    directory = _open_beneath(volume, root, [DIRECTORY], os.O_DIRECTORY)
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry, _unused in zip(entries, range(_SCAN_LIMIT), strict=False))
    finally:
        os.close(directory)
    if len(names) != 1:
        found = f"{len(names)} files ({', '.join(names[:3])}, ...)" if names else "no file"
        message = f"volume {volume}: the image has {found} in /{DIRECTORY}; exactly one is needed, or set path"
        raise PreparationError("InvalidDisk", message)
    if not names[0].isprintable():  # virt-handler would refuse the report, with a worse message
        message = f"volume {volume}: the name of the file in /{DIRECTORY} is not UTF-8, or has control characters"
        raise PreparationError("InvalidDisk", message)
    return names[0]


def _open_beneath(volume: str, root: int, names: list[str], last_flags: int = os.O_NONBLOCK) -> int:
    """Open a path component by component, and refuse links. O_NONBLOCK: opening a FIFO must not block."""
    current = os.dup(root)
    for position, name in enumerate(names):
        is_last = position == len(names) - 1
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (last_flags if is_last else os.O_DIRECTORY)
        try:
            child = os.open(name, flags, dir_fd=current)
        except OSError as error:
            where = "/" + "/".join(names[: position + 1])
            why = _describe(name, current) or error.strerror
            raise PreparationError("InvalidDisk", f"volume {volume}: cannot open {where!r}: {why}") from error
        finally:
            os.close(current)
        current = child
    return current


def _describe(name: str, directory: int) -> str:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except OSError:
        return "there is no such file in the image"
    return "it is a symbolic link, which is not followed" if stat.S_ISLNK(mode) else ""


def _check(volume: str, descriptor: int, path: str) -> Image:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise PreparationError("InvalidDisk", f"volume {volume}: {path} is not a regular file")
    header = os.pread(descriptor, _HEADER_BYTES, 0)
    for magic, name in _FOREIGN.items():
        if header.startswith(magic):
            message = f"volume {volume}: {path} is {name}; only raw and qcow2 images can be attached"
            raise PreparationError("InvalidDisk", message)
    if header.startswith(_QCOW2):
        size = _check_qcow2(volume, header)
        image = Image(path, "qcow2", size)
    else:
        image = Image(path, "raw", status.st_size)
    if image.virtual_bytes == 0:
        raise PreparationError("InvalidDisk", f"volume {volume}: {path} is empty")
    return image


def _check_qcow2(volume: str, header: bytes) -> int:
    """Return the virtual size in bytes. Layout: docs/interop/qcow2.txt of QEMU."""
    if len(header) < 72:
        raise PreparationError("InvalidDisk", f"volume {volume}: the qcow2 header is cut off")
    version, backing = struct.unpack_from(">IQ", header, 4)
    (size,) = struct.unpack_from(">Q", header, 24)
    (encryption,) = struct.unpack_from(">I", header, 32)
    incompatible = struct.unpack_from(">Q", header, 72)[0] if version >= 3 and len(header) >= 80 else 0
    problem = ""
    if version not in (2, 3):
        problem = f"has version {version}; only 2 and 3 are supported"
    elif backing:
        problem = "has a backing file; flatten it with qemu-img convert"
    elif incompatible & _INCOMPATIBLE_DATA_FILE:
        problem = "keeps its data in another file; convert it with qemu-img convert"
    elif incompatible & _INCOMPATIBLE_CORRUPT:
        problem = "is marked corrupt; see qemu-img check"
    elif encryption:
        problem = "is encrypted"
    if problem:
        raise PreparationError("InvalidDisk", f"volume {volume}: the qcow2 image {problem}")
    return int(size)
