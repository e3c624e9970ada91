# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a file that libvirtd or QEMU reads."""

from __future__ import annotations

import os


def write_file(path: str, data: bytes, *, size: int | None = None) -> None:
    """Replace a file. Only our user and group can read it. size: extend it sparsely to this many bytes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    with open(descriptor, "wb") as file:
        file.write(data)
        if size is not None:
            file.truncate(size)
