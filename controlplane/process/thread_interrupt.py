# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupt a blocking system call of a thread by a signal. A thread is given by its native id."""

from __future__ import annotations

import ctypes
import os
import signal

_INTERRUPT = signal.SIGUSR2


def make_interruptible() -> None:
    """Install the signal handler: once, in the main thread. Before that `interrupt` does nothing."""
    signal.signal(_INTERRUPT, lambda *_unused: None)


def interrupt(thread: int) -> None:
    """Interrupt the system call that a thread is in, if any."""
    if signal.getsignal(_INTERRUPT) is signal.SIG_DFL:  # without a handler the signal would end the process
        return
    ctypes.CDLL(None).tgkill(os.getpid(), thread, _INTERRUPT)  # a thread that has ended is no error
