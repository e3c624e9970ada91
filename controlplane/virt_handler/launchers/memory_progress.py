# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks whether a guest has plugged or unplugged the memory that was requested, ever less often.

libvirt has an event for this, but its text is chosen by the launcher, so it is not subscribed to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controlplane.domain.observed import Observed
from controlplane.virt_handler.vmi.ports import NoContact

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Between looks. A guest may never take it, or give back some of it only: then it is looked at as every other."""


class MemoryProgress:
    """One launcher's, over one connection after the other."""

    def __init__(self, look: Callable[[], Awaitable[None]], seen: Callable[[], Observed | None]) -> None:
        """look: read the domain's description anew (NoContact); seen: what it said last."""
        self._look = look
        self._seen = seen
        self._is_asked = asyncio.Event()

    def begin(self) -> None:
        """Take note that the guest was asked to have other memory."""
        self._is_asked.set()

    @property
    def is_begun(self) -> bool:
        """The guest was asked, and nobody has looked since."""
        return self._is_asked.is_set()

    async def follow(self) -> None:
        """Look, as long as the connection lasts; at first unasked, for another process may have asked the guest."""
        while True:
            for pause in PAUSES_SECONDS:
                await asyncio.sleep(pause)
                if not is_taking(self._seen()):
                    break
                with suppress(NoContact):
                    await self._look()
            await self._is_asked.wait()
            self._is_asked.clear()


def is_taking(observed: Observed | None) -> bool:
    """Tell whether a guest has other memory than it was asked to have."""
    return observed is not None and observed.requested_bytes not in (None, observed.taken_bytes)
