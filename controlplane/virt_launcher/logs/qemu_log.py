# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits the log of QEMU's own messages: a guest can make QEMU write any number of them.

libvirt writes the file (there is no virtlogd here). After a failed start it reads the error message, from the position
where that start began. So the newest messages always stay, and all of them while there are few.
"""

from __future__ import annotations

import os

from controlplane.virt_launcher.logs.hole_punching import free_range

LIMIT_BYTES = 1 << 20
KEPT_BYTES = 256 * 1024


def trim(path: str) -> bool:
    """Free the oldest part of a log that uses more than LIMIT_BYTES. Return whether it did."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # it does not exist before the first start
        return False
    try:
        status = os.fstat(descriptor)
        if status.st_blocks * 512 <= LIMIT_BYTES:
            return False
        _free(descriptor, status.st_size)
    finally:
        os.close(descriptor)
    return True


def _free(descriptor: int, size: int) -> None:
    try:
        free_range(descriptor, 0, size - KEPT_BYTES)
    except OSError:  # no holes on this file system: QEMU appends, so truncating only costs messages
        os.ftruncate(descriptor, 0)
