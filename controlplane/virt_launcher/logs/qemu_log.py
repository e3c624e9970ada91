# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the log of QEMU's own messages within a bound: a guest can make QEMU write as many as it likes.

libvirt opens the file (with us there is no virtlogd) and reads it when a start fails, from where that start began, to
say why. So the newest messages always stay, and as long as there are few, all of them.
"""

from __future__ import annotations

import os

from controlplane.virt_launcher.logs.hole_punching import free_range

LIMIT_BYTES = 1 << 20
KEPT_BYTES = 256 * 1024


def trim(path: str) -> bool:
    """Free what is too old of a log that takes more than LIMIT_BYTES. Return whether there was something to do."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # there is none before the first start
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
    except OSError:  # no holes here: QEMU appends, so that a cut costs messages, and nothing else
        os.ftruncate(descriptor, 0)
