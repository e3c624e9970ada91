# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a disk that a BIOS boots, without loop devices, mounts or root.

Sector 0 is GRUB's boot sector with a partition table, GRUB's core image follows it, and partition 1 holds a tar
archive, which GRUB reads like a file system. The core image carries the boot commands; there is no menu. It loads
the kernel by the 16-bit protocol: with the 32-bit protocol the kernel moves itself, which takes 2.5 s under emulation.
"""

from __future__ import annotations

import io
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from images.oci import MODIFIED_SECONDS
from images.tree import Node, write_directory
from images.trim import trim

SECTOR = 512
_PARTITION_START = 2048
_PARTITION_TYPE = 0xDA  # data without a file system
_TABLE = 446
_GRUB = "usr/lib/grub/i386-pc"
_MODULES = ("biosdisk", "part_msdos", "tar", "linux16")
_MEBIBYTE = 1 << 20


class BootDiskError(Exception):
    """GRUB's core image could not be made. Carries the output of grub-mkimage."""


def boot_disk(rootfs: Mapping[str, Node], kernel: bytes, initrd: bytes, arguments: str) -> bytes:
    """Return a raw disk image that boots a kernel with an initrd and arguments. GRUB comes from a root file system."""
    core = _core_image(rootfs, f"linux16 /vmlinuz {arguments}\ninitrd16 /initrd\nboot\n")
    files = _tar({"vmlinuz": kernel, "initrd": initrd})
    return layout(rootfs[f"{_GRUB}/boot.img"].read(), core, files)


def layout(boot_sector: bytes, core: bytes, partition: bytes) -> bytes:
    """Return the disk, padded to whole MiB. Raises ValueError if the core image does not fit."""
    if SECTOR + len(core) > _PARTITION_START * SECTOR:
        raise ValueError(f"GRUB's core image has {len(core)} bytes, too many for the gap before the first partition")
    sectors = -(-len(partition) // SECTOR)
    # Active, CHS addresses that mean "use LBA", type, first sector, number of sectors.
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", _PARTITION_TYPE, b"\xfe\xff\xff", _PARTITION_START, sectors)
    table = entry.ljust(64, b"\0") + b"\x55\xaa"
    boot_area = (boot_sector[:_TABLE] + table + core).ljust(_PARTITION_START * SECTOR, b"\0")
    disk = boot_area + partition
    return disk + b"\0" * (-len(disk) % _MEBIBYTE)


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), MODIFIED_SECONDS
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _core_image(rootfs: Mapping[str, Node], commands: str) -> bytes:
    """Run the root file system's grub-mkimage with its own libraries, from a copy."""
    program = "usr/bin/grub-mkimage"
    with tempfile.TemporaryDirectory(prefix="virtops-grub-") as scratch:
        root, script, core = Path(scratch) / "root", Path(scratch) / "commands", Path(scratch) / "core.img"
        write_directory(trim(rootfs, (program, f"{_GRUB}/*")), root)
        script.write_text(commands)
        loader = [
            str(root / "usr/lib64/ld-linux-x86-64.so.2"),
            "--library-path",
            str(root / "usr/lib/x86_64-linux-gnu"),
        ]
        options = ["-d", str(root / _GRUB), "-O", "i386-pc", "-p", "(,msdos1)/", "-c", str(script), "-o", str(core)]
        done = subprocess.run(
            [*loader, str(root / program), *options, *_MODULES], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BootDiskError(f"grub-mkimage failed: {done.stderr.strip()}")
        return core.read_bytes()
