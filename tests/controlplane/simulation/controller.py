# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-controller process: the real reconcilers, the real queue and overlay, driven one API call at a time.

Every await of a reconciler is a Call. The schedule decides when it is carried out, whether the request or the answer is
lost, and whether the process dies there. Nothing of the process survives its death but what the store holds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.backoff import BackOff
from controlplane.engine.errors import ApiError, Unavailable
from controlplane.engine.overlay import Overlay, RememberingApi
from controlplane.engine.plan import Outcome
from controlplane.engine.queue import Queue
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.tell import Kind, Regarding
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_controller.wake import connect
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.store import RESOURCES, Json, Store

Fate = Literal["done", "request lost", "answer lost"]


@dataclass(frozen=True, slots=True)
class Call:
    """An API call that waits for its fate."""

    verb: str
    resource: Resource
    key: Key
    run: Callable[[], Any]

    def __await__(self) -> Generator[Call, Any, Any]:
        return (yield self)

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.kind} {self.key}"


class CallingApi:
    """The reconcilers' API: every method waits for the schedule."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, resource: Resource, key: Key) -> Json:
        return await Call("get", resource, key, lambda: self._store.get(resource, key))  # type: ignore[no-any-return]

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        key = Key(namespace, body["metadata"]["name"])
        return await Call("create", resource, key, lambda: self._store.create(resource, namespace, body))  # type: ignore[no-any-return]

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **options: Any) -> Json:
        verb = "patch status of" if options.get("subresource") else "patch"
        return await Call(verb, resource, key, lambda: self._store.patch(resource, key, patch, **options))  # type: ignore[no-any-return]

    async def delete(self, resource: Resource, key: Key, *, uid: str, **options: Any) -> None:
        await Call("delete", resource, key, lambda: self._store.delete(resource, key, uid=uid, **options))


@dataclass(slots=True)
class Pass:
    """A reconcile under way, stopped at a call."""

    queue: Queue
    key: Key
    coroutine: Coroutine[Call, Any, Outcome]
    call: Call


@dataclass(slots=True)
class Told:
    """Events, remembered instead of written."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    occurrences: list[tuple[str, str]] = field(default_factory=list)

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        del kind
        self.occurrences.append((reason, occurrence))
        self.events.append((str(regarding.key), reason, message))


Reconcilers = Callable[..., tuple[VmReconciler, VmiReconciler]]


def real_reconcilers(**parts: Any) -> tuple[VmReconciler, VmiReconciler]:
    """Build what the process builds. Mutation tests hand in other ones."""
    return vm_reconciler(VmReconciler, **parts), vmi_reconciler(VmiReconciler, **parts)


def vm_reconciler(kind: type[VmReconciler], **parts: Any) -> VmReconciler:
    return kind(
        vms=parts["overlays"][VIRTUAL_MACHINE],
        vmis=parts["overlays"][VIRTUAL_MACHINE_INSTANCE],
        api=parts["api"],
        clock=parts["clock"],
        events=parts["events"],
        configuration=KubeVirtConfiguration,
    )


def vmi_reconciler(kind: type[VmiReconciler], **parts: Any) -> VmiReconciler:
    return kind(
        vmis=parts["overlays"][VIRTUAL_MACHINE_INSTANCE],
        pods=parts["overlays"][POD],
        nodes=parts["overlays"][NODE],
        api=parts["api"],
        clock=parts["clock"],
        events=parts["events"],
        configuration=KubeVirtConfiguration,
        launcher_image="launcher",
    )


class Controller:
    def __init__(self, name: str, store: Store, clock: SimulatedClock, rng: random.Random, build: Reconcilers) -> None:
        self.name = name
        self._clock = clock
        self.caches = {resource: LaggingCache(store, resource) for resource in RESOURCES}
        overlays = {resource: Overlay(cache) for resource, cache in self.caches.items()}
        self.told = Told()
        api = RememberingApi(CallingApi(store), overlays)
        self.vms, self.vmis = build(overlays=overlays, api=api, clock=clock, events=self.told)
        self.queues = {name: Queue(BackOff(rng.random)) for name in ("vm", "vmi")}
        self.passes: list[Pass] = []
        self.bugs: list[str] = []
        connect(
            vms=overlays[VIRTUAL_MACHINE],
            vmis=overlays[VIRTUAL_MACHINE_INSTANCE],
            pods=overlays[POD],
            nodes=overlays[NODE],
            wake_vm=lambda key: self.queues["vm"].add(key, clock.monotonic()),
            wake_vmi=lambda key: self.queues["vmi"].add(key, clock.monotonic()),
        )
        for cache in self.caches.values():
            cache.start()

    def begin(self, name: str) -> bool:
        """Start a pass over the next due key of a queue; tell whether there was one."""
        queue = self.queues[name]
        key = queue.take(self._clock.monotonic())
        if key is None:
            return False
        reconciler: Any = self.vms if name == "vm" else self.vmis
        self._resume(queue, key, reconcile(reconciler, key), None, None)
        return True

    def carry_out(self, index: int, fate: Fate) -> Call:
        """Let one waiting call happen and its pass go on to its next call or its end."""
        one = self.passes.pop(index)
        result, error = perform(one.call, fate)
        self._resume(one.queue, one.key, one.coroutine, result, error)
        return one.call

    def die(self, index: int | None, *, is_request_out: bool) -> None:
        """Stop for ever; a request that is out already still takes effect."""
        if index is not None and is_request_out:
            perform(self.passes[index].call, "answer lost")
        for one in self.passes:
            one.coroutine.close()
        self.passes.clear()

    def next_due(self) -> float | None:
        return min((due for queue in self.queues.values() if (due := queue.next_due()) is not None), default=None)

    def _resume(
        self, queue: Queue, key: Key, coroutine: Coroutine[Call, Any, Outcome], result: Any, error: ApiError | None
    ) -> None:
        try:
            call = coroutine.send(result) if error is None else coroutine.throw(error)
        except StopIteration as end:
            outcome: Outcome = end.value
            self._finish(queue, key, failed=outcome.error is not None, look_again_in=outcome.look_again_in)
        except Exception as bug:
            self.bugs.append(f"{key}: {bug!r}")
            self._finish(queue, key, failed=True, look_again_in=None)
        else:
            self.passes.append(Pass(queue, key, coroutine, call))

    def _finish(self, queue: Queue, key: Key, *, failed: bool, look_again_in: float | None) -> None:
        queue.finish(key, self._clock.monotonic(), failed=failed, look_again_in=look_again_in)


def perform(call: Call, fate: Fate) -> tuple[Any, ApiError | None]:
    """Carry a call out, or lose it on its way there or back."""
    if fate == "request lost":
        return None, Unavailable(f"{call}: connection refused")
    try:
        result = call.run()
    except ApiError as error:
        return None, error
    return (result, None) if fate == "done" else (None, Unavailable(f"{call}: connection reset"))
