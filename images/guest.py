# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test guest: a Debian kernel, its modules for virtual machines, and a BusyBox userland in an initramfs.

The guest's own programs are below test-guest/root, at their paths in the guest. docs/images.md describes the guest.
"""

from __future__ import annotations

import lzma
import posixpath
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from images import cpio
from images.bootdisk import boot_disk
from images.tree import Node, directory, read_directory, regular, symlink
from images.trim import trim

ARGUMENTS = (
    "console=tty0 console=ttyS0 quiet loglevel=3 nokaslr mitigations=off random.trust_cpu=on"
    " initcall_blacklist=jent_mod_init,load_system_certificate_list cryptomgr.notests=1 noisapnp no_timer_check"
    " highres=off hpet=disable nowatchdog tsc=reliable"
)
"""The kernel's command line when the disk boots. The disabled features cost time under emulation. On a busy host the
kernel's timer check may fail, which would be a panic. The last line is for idle guests: QEMU's HPET keeps ticking
after the kernel has left it, and without a clock that it believes in (the comparison with another one may fail on a
busy host) the kernel ticks 250 times a second."""

_PROGRAMS = ("usr/bin/busybox",)
_EXECUTABLE = re.compile(rb"#!/bin/sh")
_SIGNATURE_MARKER = b"~Module signature appended~\n"
_DISK_OWNER = 107
_DEVICES = {"dev/console": cpio.CharacterDevice(5, 1), "dev/null": cpio.CharacterDevice(1, 3, 0o666)}


class GuestError(ValueError):
    """The guest cannot be made from this root file system. The text names what is missing."""


def image_files(rootfs: Mapping[str, Node], sources: Path) -> dict[str, Node]:
    """Return the files of the test guest's image: the disk, and kernel and initrd as files for kernelBoot.

    rootfs: a Debian with the packages of test-guest/packages. sources: the directory test-guest.
    """
    kernel = _kernel(rootfs)
    initrd = cpio.archive(initrd_tree(rootfs, sources), _DEVICES)
    disk = boot_disk(rootfs, kernel, initrd, ARGUMENTS)
    return {
        "boot/vmlinuz": regular(kernel, mode=0o444),
        "boot/initrd": regular(initrd, mode=0o444),
        "disk/guest.img": regular(disk, mode=0o444, owner=_DISK_OWNER),
    }


def initrd_tree(rootfs: Mapping[str, Node], sources: Path) -> dict[str, Node]:
    """Return the guest's root file system."""
    tree = dict(trim(rootfs, _PROGRAMS))
    tree.update(_applets(tree["usr/bin/busybox"].read()))
    tree.update({name: directory() for name in ("proc", "sys", "run", "root", "mnt")})
    tree["tmp"] = directory(mode=0o1777)
    tree["var/run"] = symlink("/run")
    for name, node in read_directory(sources / "root").items():
        tree[name] = regular(node.read(), mode=_mode(name, node)) if node.kind == "file" else node
    tree.update(_modules(rootfs, (sources / "modules").read_text()))
    return tree


def _mode(name: str, node: Node) -> int:
    """Derive the mode of a file. Some ways to distribute a collection do not keep modes."""
    if name == "etc/shadow":
        return 0o600
    return 0o755 if _EXECUTABLE.match(node.read(16)) else 0o644


def _kernel(rootfs: Mapping[str, Node]) -> bytes:
    kernels = sorted(name for name in rootfs if name.startswith("boot/vmlinuz-"))
    if len(kernels) != 1:
        raise GuestError(f"expected one kernel in /boot of the root file system, found {kernels or 'none'}")
    return rootfs[kernels[0]].read()


def _applets(busybox: bytes) -> Iterator[tuple[str, Node]]:
    """Link every applet to BusyBox. The names are in a sorted table in the program."""
    at = busybox.index(b"\0[\0[[\0") + 1
    names: list[str] = []
    while (name := busybox[at : busybox.index(b"\0", at)].decode()) and (not names or name > names[-1]):
        names.append(name)
        at += len(name) + 1
    yield from ((f"usr/bin/{name}", symlink("busybox")) for name in names if name != "busybox")
    yield from (
        (f"usr/sbin/{name}", symlink("../bin/busybox")) for name in ("acpid", "init", "getty", "poweroff", "reboot")
    )


def _modules(rootfs: Mapping[str, Node], listing: str) -> dict[str, Node]:
    """Return the listed kernel modules, uncompressed, and etc/modules: lines `GROUP FILE` in loading order."""
    indexes = [name for name in rootfs if name.endswith("/modules.dep")]
    if len(indexes) != 1:
        raise GuestError(f"expected one modules.dep in the root file system, found {indexes or 'none'}")
    folder = posixpath.dirname(indexes[0])
    dependencies = _dependencies(rootfs[indexes[0]].read().decode())
    tree: dict[str, Node] = {}
    lines: dict[str, None] = {}
    for group, module in _listed(listing):
        if module not in dependencies:
            raise GuestError(f"the kernel has no module {module}")
        for path in (*reversed(dependencies[module][1:]), dependencies[module][0]):
            name = posixpath.basename(path).removesuffix(".xz")
            tree[f"usr/lib/modules/{name}"] = regular(_uncompressed(rootfs[f"{folder}/{path}"], path))
            lines[f"{group} {name}"] = None
    tree["etc/modules"] = regular("".join(f"{line}\n" for line in lines).encode())
    return tree


def _listed(listing: str) -> Iterator[tuple[str, str]]:
    group = "always"
    for raw in listing.splitlines():
        line = raw.partition("#")[0].strip()
        if line.startswith("["):
            group = line.strip("[]")
        elif line:
            yield group, line


def _dependencies(index: str) -> dict[str, list[str]]:
    """Parse modules.dep: module name -> its file, then the files of its dependencies, the direct ones first."""
    files = {}
    for line in index.splitlines():
        path, _unused, needed = line.partition(":")
        files[posixpath.basename(path).partition(".ko")[0]] = [path, *needed.split()]
    return files


def _uncompressed(node: Node, path: str) -> bytes:
    data = lzma.decompress(node.read()) if path.endswith(".xz") else node.read()
    return without_signature(data)


def without_signature(module: bytes) -> bytes:
    """Remove a kernel module's signature. Its check takes 20 ms per module under emulation.

    Layout, from the end: a marker; twelve bytes, the last four are the signature's length; the signature.
    """
    if not module.endswith(_SIGNATURE_MARKER):
        return module
    end = len(module) - len(_SIGNATURE_MARKER)
    (length,) = struct.unpack(">I", module[end - 4 : end])
    return module[: end - 12 - length]
