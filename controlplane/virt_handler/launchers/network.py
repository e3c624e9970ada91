# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairs the network of a launcher Pod periodically after it was set up.

An administrator or a restarted CNI plugin can flush the Pod's rules or delete its bridge, without an event. virt-node
checks the network and changes only what differs.

A deleted tap cannot be restored: QEMU keeps the deleted one open, which has no connection. virt-handler detects that
because no process has the new tap open.

Operations and user requests do not wait for repairs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from controlplane.api.objects.pod import sanitize
from controlplane.engine.ports import Clock
from controlplane.links.node.messages import Masquerade
from controlplane.virt_handler.launchers.ports import Node, NodeAway, NodeError, NotThere

log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0
"""The pause after a failed repair."""
TAP_GONE = "the guest has lost its network: the tap of its Pod was deleted. Restart the machine"


class Network:
    """The network of one launcher Pod."""

    def __init__(
        self,
        node: Node,
        pod_uid: str,
        clock: Clock,
        *,
        pause: Callable[[], float],
        trouble: Callable[[str], None],
        has_guest: Callable[[], bool],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """pause: returns the seconds until the next repair. trouble: called with the problem, "" for none.

        has_guest: whether a guest is up.
        """
        self._node = node
        self._pod_uid = pod_uid
        self._clock = clock
        self._pause = pause
        self._trouble = trouble
        self._has_guest = has_guest
        self._sleep = sleep
        self._wanted: Masquerade | None = None
        self._due_at = clock.monotonic() + pause()

    def keep(self, wanted: Masquerade | None) -> None:
        """Record the network that was just set up, to repair it from now on; None: the guest has none."""
        self._wanted = wanted
        self._due_at = self._clock.monotonic() + self._pause()

    async def follow(self) -> None:
        """Repair the network whenever it is due, while the connection lasts."""
        while True:
            if (seconds := self._due_at - self._clock.monotonic()) > 0:
                await self._sleep(seconds)
            else:
                self._due_at = self._clock.monotonic() + await self._repair()

    async def _repair(self) -> float:
        """Repair the network; return the seconds until the next time."""
        if self._wanted is None:
            return self._pause()
        try:
            interface = await self._node.set_up_network(self._pod_uid, self._wanted)
        except (NodeAway, NotThere):  # virt-node is unreachable or the Pod is gone: this is no problem of the network
            return min(AGAIN_SECONDS, self._pause())
        except NodeError as error:
            message = sanitize(f"cannot set up the Pod's network: {error}")
            log.warning("cannot repair a Pod's network", extra={"pod_uid": self._pod_uid, "error": message})
            self._trouble(message)
            return min(AGAIN_SECONDS, self._pause())
        self._trouble(TAP_GONE if interface.is_tap_open is False and self._has_guest() else "")
        return self._pause()
