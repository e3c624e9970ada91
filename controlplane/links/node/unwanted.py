# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Close what somebody else opened, where it keeps nobody.

Whoever closes the last copy of a TCP socket waits as long as its maker said (SO_LINGER, up to decades), in the kernel;
whoever closes a Unix socket closes what was sent along and never received. So both are closed in a thread, one after
another, and a signal ends each wait. Since Linux 6.16 a socket need not take any (controlplane.process.fd_passing).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from controlplane.process import threads

_PATIENCE_SECONDS = 0.1


class Unwanted:
    """Descriptors that are to be closed; there is one thread at most."""

    def __init__(self) -> None:
        self._left: deque[int] = deque()
        self._is_at_work = False
        self._callback: Callable[[], object] | None = None

    def __len__(self) -> int:
        """How many wait for their turn."""
        return len(self._left)

    def add(self, *descriptors: int) -> None:
        """Close them, in a while; never waits. On the loop."""
        self._left.extend(descriptors)
        self._go_on()

    def once_closed(self, callback: Callable[[], object]) -> None:
        """Call back when all that was added is closed."""
        self._callback = callback
        self._go_on()

    def _go_on(self) -> None:
        if self._is_at_work:
            return
        if not self._left:
            callback, self._callback = self._callback, None
            if callback is not None:
                callback()
            return
        try:
            threads.start_thread("close", self._close, self._settle, interrupt_after=_PATIENCE_SECONDS)
            self._is_at_work = True
        except RuntimeError:  # the node has no thread for it, which passes
            asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._go_on)

    def _close(self) -> None:
        while self._left:
            with suppress(OSError):  # it is closed then as well
                os.close(self._left.popleft())

    def _settle(self, _unused: None, __: BaseException | None) -> None:
        self._is_at_work = False
        self._go_on()
