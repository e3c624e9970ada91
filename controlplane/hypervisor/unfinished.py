# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bytes of messages that are not whole yet all connections of this process hold together.

Each connection's intake lets ten megabytes through until libvirt's keepalive ends it, 45 s after its last whole
message: fifty hold more than virt-handler may have. So they have a budget in common, and where it is used up whoever
holds most is cut off: an honest libvirtd holds some tens of kilobytes for a moment, and cannot be the one.

libvirt reads one message at a time. So when an event has been told, or a call has been answered, nothing is held of
what came before it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from controlplane.hypervisor.wire import Wire

MOST_BYTES = 64 << 20
"""Of all connections; four agents' longest answers are 20 MiB of it."""
TOO_MUCH = "it holds most of what is unfinished, and there is room for no more"


class Unfinished:
    """Who holds how much. From any thread."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[Wire, int] = WeakKeyDictionary()

    @property
    def held(self) -> int:
        return sum(self._held.values())

    def hold(self, wire: Wire, amount: int, *, is_whole: bool) -> list[Wire]:
        """Count bytes that came in; return who has to go, and holds nothing any more. is_whole: a message's last."""
        with self._lock:
            self._held[wire] = 0 if is_whole else self._held.get(wire, 0) + amount
            going = []
            while self.held > self._most:
                most = max(self._held, key=lambda one: self._held[one])
                going.append(most)
                del self._held[most]
        return going

    def forget(self, wire: Wire) -> None:
        """Its connection is ended."""
        with self._lock:
            self._held.pop(wire, None)


OF_PROCESS = Unfinished()
