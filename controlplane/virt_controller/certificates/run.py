# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that virt-controller's leader starts: watch, observe, decide, apply."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError, Conflict
from controlplane.engine.ports import Clock
from controlplane.kube.client import Client, Selection
from controlplane.kube.watch import WatchCache
from controlplane.virt_controller.certificates.apply import apply
from controlplane.virt_controller.certificates.decide import Plan, decide
from controlplane.virt_controller.certificates.observe import VERIFIERS, observe, secrets

log = logging.getLogger(__name__)

STALE_SECONDS = 0.5  # what we wrote comes back by watch within this
RETRY_SECONDS = 5.0


async def run(client: Client, namespace: str, clock: Clock) -> None:
    """Keep the certificates right until cancelled. Start it as a task of the leader, with a guarded client."""
    changed = asyncio.Event()

    def note(key: Key, before: bytes | None, after: bytes | None) -> None:
        del key, before, after
        changed.set()

    caches = [
        (resource, key, WatchCache(client, Selection(resource, key.namespace, field_selector=_named(key)), clock))
        for resource, key in (*secrets(namespace), *VERIFIERS)
    ]
    async with asyncio.TaskGroup() as tasks:
        for *_which, cache in caches:
            cache.subscribe(note)
            tasks.create_task(cache.run())
        for *_which, cache in caches:
            await cache.wait_synced()
        while True:
            changed.clear()
            rest = await _once(client, decide(observe(caches, namespace, clock.now())), clock)
            with suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await changed.wait()


async def _once(client: Client, plan: Plan, clock: Clock) -> float:
    """Carry out a plan; return how long to wait for a change."""
    try:
        for action in plan.actions:
            await apply(client, action, clock.now())
    except Conflict:
        return STALE_SECONDS
    except ApiError as error:
        log.warning("cannot keep the certificates", extra={"because": error})
        return RETRY_SECONDS
    return RETRY_SECONDS if plan.actions else plan.look_again_in


def _named(key: Key) -> str:
    return f"metadata.name={key.name}"
