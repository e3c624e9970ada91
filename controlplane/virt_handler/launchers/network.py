# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a Pod that was set up once, seen to again now and then.

Who flushes its rules or takes its bridge away (an administrator, a plugin of the cluster's network that starts anew)
tells nobody. What is as it should be is looked at and left, by virt-node.

A tap that was deleted under its guest cannot be given back: QEMU holds the former one for as long as it runs, and that
leads nowhere. The new one, which nobody has open, shows it.

Beside the verbs: what a person asks of a guest does not wait for it.
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
"""After a time of which nothing came."""
TAP_GONE = "the guest has lost its network: the tap that it was started with is gone from its Pod. Restart the machine"


class Network:
    """Of one Pod."""

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
        """pause: the seconds until the next time. trouble: told why it cannot be seen to, and "" when it was.

        has_guest: whether one is seen up.
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
        """Take note of what was set up just now; None: the guest has no network."""
        self._wanted = wanted
        self._due_at = self._clock.monotonic() + self._pause()

    async def follow(self) -> None:
        """See to it whenever it is due, for as long as a connection lasts."""
        while True:
            if (left := self._due_at - self._clock.monotonic()) > 0:
                await self._sleep(left)
            else:
                self._due_at = self._clock.monotonic() + await self._see_to_it()

    async def _see_to_it(self) -> float:
        """Have what is missing made; return the seconds until the next time."""
        if self._wanted is None:
            return self._pause()
        try:
            told = await self._node.set_up_network(self._pod_uid, self._wanted)
        except (NodeAway, NotThere):  # of virt-node, or of a Pod that goes: not of the network
            return min(AGAIN_SECONDS, self._pause())
        except NodeError as error:
            said = sanitize(f"cannot set up the Pod's network: {error}")
            log.warning("a network cannot be seen to", extra={"pod_uid": self._pod_uid, "error": said})
            self._trouble(said)
            return min(AGAIN_SECONDS, self._pause())
        self._trouble(TAP_GONE if told.is_tap_open is False and self._has_guest() else "")
        return self._pause()
