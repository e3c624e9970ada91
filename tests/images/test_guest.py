# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes into the guest: modules in order, scripts with their modes, BusyBox's applets."""

from __future__ import annotations

import lzma
import re
import struct

import pytest

from images import guest
from images.build import COLLECTION
from images.tree import Node, regular

SOURCES = COLLECTION / "images/test-guest"
FOLDER = "usr/lib/modules/6.12"


def a_rootfs(**files: bytes) -> dict[str, Node]:
    """Return a root file system with two modules, one of which needs two others."""
    index = "kernel/a.ko.xz: kernel/b.ko.xz kernel/c.ko.xz\nkernel/b.ko.xz: kernel/c.ko.xz\nkernel/c.ko.xz:\n"
    tree = {f"{FOLDER}/modules.dep": regular(index.encode())}
    tree |= {f"{FOLDER}/kernel/{name}.ko.xz": regular(lzma.compress(name.encode())) for name in "abc"}
    return tree | {name: regular(data) for name, data in files.items()}


def test_modules_are_loaded_after_those_that_they_need_and_by_group() -> None:
    tree = guest._modules(a_rootfs(), "# comment\nc\n\n[disk]\na  # the driver\n")
    assert tree["etc/modules"].read().decode().splitlines() == ["always c.ko", "disk c.ko", "disk b.ko", "disk a.ko"]
    assert tree["usr/lib/modules/a.ko"].read() == b"a"


def test_a_module_that_the_kernel_does_not_have_is_named() -> None:
    with pytest.raises(guest.GuestError, match="has no module virtio_net"):
        guest._modules(a_rootfs(), "virtio_net\n")


def test_a_kernel_must_be_there() -> None:
    with pytest.raises(guest.GuestError, match="expected one kernel in /boot of the root file system, found none"):
        guest.image_files(a_rootfs(), SOURCES)


def test_signatures_of_modules_are_cut_off() -> None:
    signed = b"module" + b"s" * 20 + struct.pack(">8xI", 20) + b"~Module signature appended~\n"
    assert guest.without_signature(signed) == b"module"
    assert guest.without_signature(b"module") == b"module"


def test_applets_are_read_out_of_busybox() -> None:
    table = b"\0[\0[[\0acpid\0ash\0busybox\0zcat\0\0Usage"
    names = dict(guest._applets(b"\x7fELF" + table))
    assert [name for name in names if name.startswith("usr/bin/")] == [
        f"usr/bin/{name}" for name in ("[", "[[", "acpid", "ash", "zcat")
    ]


def test_scripts_are_executable_and_the_password_file_is_not_readable() -> None:
    modes = {
        path.relative_to(SOURCES / "root").as_posix(): guest._mode(
            path.relative_to(SOURCES / "root").as_posix(), regular(path.read_bytes())
        )
        for path in (SOURCES / "root").rglob("*")
        if path.is_file()
    }
    assert modes["init"] == modes["usr/lib/guest/boot"] == modes["etc/acpi/PWRF/00000080"] == 0o755
    assert modes["etc/shadow"] == 0o600
    assert modes["etc/inittab"] == modes["usr/lib/guest/seed"] == 0o644


def test_every_group_of_modules_that_the_scripts_load_is_listed() -> None:
    scripts = "".join(path.read_text() for path in (SOURCES / "root/usr/lib/guest").iterdir())
    wanted = set(re.findall(r"load_modules ([a-z0-9-]+)", scripts))
    assert wanted == {group for group, _unused in guest._listed((SOURCES / "modules").read_text())} - {"always"}
