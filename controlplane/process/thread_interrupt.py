# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signal that ends what a thread of ours waits for in the kernel. A thread: its number for the kernel."""

from __future__ import annotations

import ctypes
import os
import signal

_INTERRUPT = signal.SIGUSR2


def make_interruptible() -> None:
    """Let threads be interrupted; once, in the main thread. Until then none is."""
    signal.signal(_INTERRUPT, lambda *_unused: None)


def interrupt(thread: int) -> None:
    """End what a thread waits for in the kernel, if it waits there now."""
    if signal.getsignal(_INTERRUPT) is signal.SIG_DFL:  # it would end the process
        return
    ctypes.CDLL(None).tgkill(os.getpid(), thread, _INTERRUPT)  # one that has ended since is no harm
