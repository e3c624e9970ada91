# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Polls whether a guest has plugged or unplugged the requested memory, at growing intervals.

libvirt has an event for this, but virt-handler does not subscribe to it, because the launcher can choose its text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controlplane.domain.observed import Observed
from controlplane.virt_handler.vmi.ports import NoContact

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Pauses between looks. A guest may never plug the memory; after the last pause only the periodic looks remain."""


class MemoryProgress:
    """Polls one launcher's domain, across connections."""

    def __init__(self, look: Callable[[], Awaitable[None]], last: Callable[[], Observed | None]) -> None:
        """look: reads the domain's description again (NoContact). last: returns the last description."""
        self._look = look
        self._last = last
        self._requested = asyncio.Event()

    def begin(self) -> None:
        """Begin to poll: a change of memory was requested from the guest."""
        self._requested.set()

    @property
    def is_begun(self) -> bool:
        """The change was requested, and polling has not begun yet."""
        return self._requested.is_set()

    async def follow(self) -> None:
        """Poll while the connection lasts; at first without a request, which another process may have made."""
        while True:
            for pause in PAUSES_SECONDS:
                await asyncio.sleep(pause)
                if not is_taking(self._last()):
                    break
                with suppress(NoContact):
                    await self._look()
            await self._requested.wait()
            self._requested.clear()


def is_taking(observed: Observed | None) -> bool:
    """Tell whether the guest's plugged memory differs from the requested memory."""
    return observed is not None and observed.requested_bytes not in (None, observed.taken_bytes)
