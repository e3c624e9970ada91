# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frees a range of a file that another process appends to, by a hole. The two processes need no coordination."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

_KEEP_SIZE_AND_PUNCH = 0x01 | 0x02


def free_range(descriptor: int, start: int, length: int) -> None:
    """Free a range of a file without changing its size. OSError when the file system does not support it."""
    if length > 0 and _fallocate()(descriptor, _KEEP_SIZE_AND_PUNCH, start, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    fallocate: Callable[[int, int, int, int], int] = libc.fallocate
    return fallocate
