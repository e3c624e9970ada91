# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take room back from a file that somebody else goes on appending to, without a race: a hole where the old is."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

_KEEP_SIZE_AND_PUNCH = 0x01 | 0x02


def free_range(descriptor: int, start: int, length: int) -> None:
    """Free a range of a file; its size stays. OSError where the file system cannot do that."""
    if length > 0 and _fallocate()(descriptor, _KEEP_SIZE_AND_PUNCH, start, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    found: Callable[[int, int, int, int], int] = libc.fallocate
    return found
