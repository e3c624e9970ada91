# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bytes of incomplete messages all connections of this process hold together.

Each connection's receive quota lets ten megabytes through until libvirt's keepalive ends the connection, 45 s after its
last complete message: fifty connections need more memory than virt-handler has. So they share a limit, and when it is
reached the connection that holds the most is cut. An ordinary libvirtd holds some tens of kilobytes for a moment, so it
is never the one.

libvirt reads one message at a time: after an event or the reply to a call nothing earlier is held.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from controlplane.hypervisor.transport import Transport

MOST_BYTES = 64 << 20
"""Over all connections. The longest responses of four agents are 20 MiB of it."""
PARTIAL_MESSAGES_EXCEEDED = "it holds the most bytes of incomplete messages, and their limit is reached"


class PartialMessages:
    """How many bytes each connection holds. From any thread."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._bytes: WeakKeyDictionary[Transport, int] = WeakKeyDictionary()

    @property
    def total(self) -> int:
        return sum(self._bytes.values())

    def add(self, transport: Transport, amount: int, *, is_whole: bool) -> list[Transport]:
        """Count received bytes; return the connections to cut. is_whole: the message is complete with them."""
        with self._lock:
            self._bytes[transport] = 0 if is_whole else self._bytes.get(transport, 0) + amount
            to_cut = []
            while self.total > self._most:
                largest = max(self._bytes, key=self._bytes.__getitem__)
                to_cut.append(largest)
                del self._bytes[largest]
        return to_cut

    def forget(self, transport: Transport) -> None:
        """Drop a connection that has ended."""
        with self._lock:
            self._bytes.pop(transport, None)


PROCESS_WIDE = PartialMessages()
