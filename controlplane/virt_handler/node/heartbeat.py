# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps this node schedulable while this process serves. labels.py builds the labels.

virt-controller makes a node unschedulable when its virt-handler does not renew its Lease; only virt-handler reverts
that. It checks the label when the Lease is renewed again, and every minute, because virt-controller's write may come
later. While the Lease is not renewed it writes nothing: virt-controller would revert the write, again and again. It
polls, because a watch would need permission to read every Node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Json
from controlplane.kube.lease import Heartbeat
from controlplane.virt_handler.node.labels import is_needed, unschedulable

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0


async def keep_schedulable(
    api: Api,
    name: str,
    serving: Callable[[Json], Json],
    heartbeat: Heartbeat,
    *,
    start_blocked_reason: Callable[[], str],
    wait: Callable[[asyncio.Event, float], Awaitable[None]] | None = None,
) -> None:
    """Label the Node, and repair the label whenever it differs, until cancelled.

    serving: returns the patch for the current Node. start_blocked_reason: returns why no VMI may start
    yet, or ""; a change sets the heartbeat's event. wait: waits for the event, with a timeout in seconds.
    """
    wait = wait or _wait
    pause = RETRY_SECONDS
    while True:
        heartbeat.resumed.clear()
        try:
            await _look(api, name, lambda node: _unless_blocked(serving(node), start_blocked_reason()), heartbeat)
            pause = RETRY_SECONDS
            delay = LOOK_SECONDS
        except ApiError as error:
            log.warning("cannot label the node", extra={"node": name, "error": str(error)})
            delay, pause = pause, min(pause * 2, LONGEST_RETRY_SECONDS)
        await wait(heartbeat.resumed, delay)


def _unless_blocked(patch: Json, reason: str) -> Json:
    return unschedulable(patch) if reason else patch


async def _look(api: Api, name: str, serving: Callable[[Json], Json], heartbeat: Heartbeat) -> None:
    key = Key("", name)
    node = await api.get(NODE, key)
    patch = serving(node)
    # Many components watch Nodes, so an unchanged Node is not written.
    if is_needed(node, patch) and heartbeat.is_fresh:
        await api.patch(NODE, key, patch, subresource="status")
        log.info("serving", extra={"node": name})


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
