# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Close descriptors that a peer opened, without blocking the event loop.

The last close of a TCP socket waits in the kernel as long as its maker has set (SO_LINGER, up to decades). Closing a
Unix socket also closes descriptors that were sent over it and not received. So descriptors are closed in a thread, one
after another, and a signal ends each wait. Since Linux 6.16 a socket can refuse descriptors
(controlplane.process.fd_passing).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from controlplane.process import threads

_INTERRUPT_SECONDS = 0.1


class DescriptorCloser:
    """Closes descriptors, in at most one thread."""

    def __init__(self) -> None:
        self._descriptors: deque[int] = deque()
        self._is_running = False
        self._callback: Callable[[], object] | None = None

    def __len__(self) -> int:
        """How many descriptors are still to be closed."""
        return len(self._descriptors)

    def add(self, *descriptors: int) -> None:
        """Close descriptors in the thread; never blocks. Called on the loop."""
        self._descriptors.extend(descriptors)
        self._continue()

    def when_closed(self, callback: Callable[[], object]) -> None:
        """Call back when all descriptors are closed."""
        self._callback = callback
        self._continue()

    def _continue(self) -> None:
        if self._is_running:
            return
        if not self._descriptors:
            callback, self._callback = self._callback, None
            if callback is not None:
                callback()
            return
        try:
            threads.start_thread("close", self._close, self._settle, interrupt_after=_INTERRUPT_SECONDS)
            self._is_running = True
        except RuntimeError:  # no thread can be started now; try again
            asyncio.get_running_loop().call_later(_INTERRUPT_SECONDS, self._continue)

    def _close(self) -> None:
        while self._descriptors:
            with suppress(OSError):  # the descriptor is closed even so
                os.close(self._descriptors.popleft())

    def _settle(self, _unused: None, __: BaseException | None) -> None:
        self._is_running = False
        self._continue()
