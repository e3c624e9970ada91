# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that virt-controller's leader starts: watch, observe, decide, apply. No error in a pass ends it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from controlplane.api.certificate_lifetimes import Lifetimes, lifetimes
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.backoff import BackOff
from controlplane.engine.errors import ApiError, Conflict
from controlplane.engine.ports import Cache, Clock
from controlplane.kube.client import Client, Selection
from controlplane.kube.configuration import Configuration
from controlplane.kube.watch import WatchCache
from controlplane.virt_controller.certificates.apply import EnsuringApi, apply
from controlplane.virt_controller.certificates.decide import decide
from controlplane.virt_controller.certificates.observe import AUTHORITY_SECRET, VERIFIERS, observe, secrets
from controlplane.virt_controller.certificates.observed_since import ObservedSince, with_ages

log = logging.getLogger(__name__)

STALE_SECONDS = 0.5  # the watch shows this process's write within this time
RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 60.0  # a lasting refusal is retried once a minute, or when something changes
LONGEST_BACK_OFF_SECONDS = 300.0
LOOK_SECONDS = 600.0  # no event reports that the clock was set, so due times are checked at least this often


async def run(client: Client, namespace: str, clock: Clock, configuration: Configuration) -> None:
    """Maintain the certificates until cancelled. Start it as a task of the leader, with a guarded client."""
    changed = asyncio.Event()

    def note(key: Key, before: bytes | None, after: bytes | None) -> None:
        del key, before, after
        changed.set()

    caches = [
        (resource, key, WatchCache(client, Selection(resource, key.namespace, field_selector=_named(key)), clock))
        for resource, key in (*secrets(namespace), *VERIFIERS)
    ]
    keeper = Keeper(client, caches, namespace, clock, lifetimes=lambda: wanted_lifetimes(configuration))
    configuration.subscribe(lambda _new: changed.set())
    async with asyncio.TaskGroup() as tasks:
        for *_which, cache in caches:
            cache.subscribe(note)
            tasks.create_task(cache.run())
        for *_which, cache in caches:
            await cache.wait_synced()
        while True:
            changed.clear()
            pause = await keeper.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()


def wanted_lifetimes(configuration: Configuration) -> Lifetimes:
    """Return the lifetimes that the KubeVirt object asks for."""
    return lifetimes(configuration.spec.certificate_rotate_strategy.self_signed)


class Keeper:
    """Passes over the certificates, and the state between them."""

    def __init__(
        self,
        api: EnsuringApi,
        caches: Sequence[tuple[Resource, Key, Cache]],
        namespace: str,
        clock: Clock,
        *,
        lifetimes: Callable[[], Lifetimes] = Lifetimes,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._caches = caches
        self._namespace = namespace
        self._key = Key(namespace, AUTHORITY_SECRET)
        self._clock = clock
        self._lifetimes = lifetimes
        self._sleep = sleep
        self._observed_since = ObservedSince()
        self._waiting = ""
        self._back_off = BackOff(chance, base_seconds=RETRY_SECONDS, cap_seconds=LONGEST_BACK_OFF_SECONDS)
        self._stale = BackOff(chance, base_seconds=STALE_SECONDS, cap_seconds=RETRY_SECONDS)
        self._refused = BackOff(chance, base_seconds=RETRY_SECONDS, cap_seconds=LONGEST_RETRY_SECONDS)

    async def step(self) -> float:
        """Make one pass; return how many seconds to wait for a change. A bug costs a back-off, never the process."""
        try:
            pause = await self._pass()
        except Exception:
            log.exception("bug while maintaining the certificates")
            # Sleep here: in run(), a change would end the wait, and the same bug would occur at once.
            await self._sleep(self._back_off.fail(self._key))
            return 0.0
        self._back_off.forget(self._key)
        return pause

    async def _pass(self) -> float:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        world = with_ages(
            observe(self._caches, self._namespace, now, self._lifetimes()), self._observed_since, monotonic
        )
        plan = decide(world)
        self._report_waiting(plan.waiting)
        try:
            for action in plan.actions:
                await apply(self._api, action, self._clock.now())
        except Conflict:
            return self._stale.fail(self._key)
        except ApiError as error:
            log.warning("cannot maintain the certificates", extra={"because": error})
            return self._refused.fail(self._key)
        self._stale.forget(self._key)
        self._refused.forget(self._key)
        return RETRY_SECONDS if plan.actions else min(plan.requeue_after, LOOK_SECONDS)

    def _report_waiting(self, waiting: str) -> None:
        """Log once that a CA is not valid yet."""
        if waiting and waiting != self._waiting:
            log.warning(
                "the CA in the Secret is not valid yet; key pairs of the former CA are not renewed until then",
                extra={"key": self._key, "because": waiting},
            )
        self._waiting = waiting


def _named(key: Key) -> str:
    return f"metadata.name={key.name}"
