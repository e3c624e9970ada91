# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of block devices: two controllers that both take themselves for the leader, lost and late writes, watches
that lag, and users who delete instances and remove finalizers.

No two guests ever have one device, and no guest is stopped. When nothing is lost any more, every instance that waits
gets its turn, by what the watches enqueue alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.claim import Claims, PersistentVolumeClaim
from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.engine.errors import ApiError, NotFound, Unavailable
from controlplane.engine.read_your_writes import ReadYourWritesApi
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.changes import meta_of, vmis_named
from controlplane.virt_controller.controller import KeysOf
from controlplane.virt_controller.vmi.claim_watches import claim_watches
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld, StoreApi
from tests.controlplane.virt_controller.vmi.stage import UP
from tests.support.store import OVER, Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
NAMES = ("a", "b", "c")
CLAIMS = (("x",), ("x",), ("x",), ("y",), ("x", "y"))
FATES = (*("done",) * 6, "lost", "late", "answer lost")
FATES_OF_CREATE = ("done", "late", "late", "answer lost")
BLOCK = decode({"spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}}, PersistentVolumeClaim)
CONFIGURATION = KubeVirtConfiguration()
STEPS = 200
ROUNDS = 100


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_block_device_has_one_guest_and_everybody_gets_a_turn(seed: int) -> None:
    asyncio.run(play(Cluster(random.Random(seed))))


async def play(cluster: Cluster) -> None:
    for _unused in range(STEPS):
        await cluster.step()
    await cluster.settle()


class UnreliableApi(StoreApi):
    """Writes of one controller: some are lost, some arrive later, of some the answer is lost."""

    __slots__ = ("is_reliable", "late", "rng")

    def __init__(self, store: Store, rng: random.Random) -> None:
        super().__init__(store)
        self.rng = rng
        self.late: list[Callable[[], object]] = []
        self.is_reliable = False

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        stored: Json = self._write(lambda: self.store.create(resource, namespace, body), FATES_OF_CREATE)
        return stored

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **options: Any) -> Json:
        stored: Json = self._write(lambda: self.store.patch(resource, key, patch, **options))
        return stored

    async def delete(self, resource: Resource, key: Key, *, uid: str, **options: Any) -> None:
        self._write(lambda: self.store.delete(resource, key, uid=uid, **options))

    def _write(self, run: Callable[[], Any], fates: tuple[str, ...] = FATES) -> Any:
        fate = "done" if self.is_reliable else self.rng.choice(fates)
        if fate == "late":
            self.late.append(run)
        if fate in ("done", "answer lost"):
            answer = run()
            if fate == "done":
                return answer
        raise Unavailable(fate)

    def deliver(self) -> None:
        """Let one late write arrive."""
        with suppress(ApiError):  # nobody reads the answer
            self.late.pop(self.rng.randrange(len(self.late)))()


class Leader(SmallWorld):
    """A controller with its own caches. It reconciles what its watches enqueue, and retries what failed."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        super().__init__(store=store)
        self.unreliable = UnreliableApi(store, rng)
        self.queue: set[Key] = set()
        self.reconciler = VmiReconciler(
            vmis=self.overlays[VMI],
            pods=self.overlays[POD],
            nodes=self.overlays[NODE],
            api=ReadYourWritesApi(self.unreliable, self.overlays),
            clock=self.clock,
            events=self.recorder,
            configuration=lambda: CONFIGURATION,
            launcher_image="launcher",
            claims=_read_claims,
        )
        self.overlays[VMI].subscribe(lambda key, _before, _after: self.queue.add(key))
        self.overlays[POD].subscribe(self._on_pod)
        for watch in claim_watches(self.overlays[VMI], self.overlays[POD]):
            self.overlays[watch.resource].subscribe(partial(self._enqueue, watch.keys))
        self.start()

    def _on_pod(self, _key: Key, before: bytes | None, after: bytes | None) -> None:
        for raw in (before, after):
            if raw is not None:
                self.queue.update(vmis_named(meta_of(raw)))

    def _enqueue(self, keys: KeysOf, key: Key, before: bytes | None, after: bytes | None) -> None:
        self.queue.update(keys(key, before, after))

    async def work(self, key: Key) -> None:
        self.queue.discard(key)
        outcome = await reconcile(self.reconciler, key)
        if outcome.error is not None or outcome.requeue_after is not None:
            self.queue.add(key)


def _read_claims(_namespace: str, _volumes: Iterable[Volume]) -> Claims:
    return {"x": BLOCK, "y": BLOCK}


class Cluster:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.store = SmallWorld().store
        self.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
        for name in NAMES:
            self.make(name)
            if rng.random() < 0.8:  # a former leader was about to create its Pod
                begun = {"status": {"phase": "Scheduling", "attempt": 1}}
                self.store.patch(VMI, Key("default", name), begun, subresource="status")
        self.leaders = [Leader(self.store, rng), Leader(self.store, rng)]
        self.granted: dict[str, Key] = {}
        """Pods that were ever granted the start, by UID, and their instances."""
        self.is_attached_once = rng.random() < 0.5
        """A device is on one node at a time, and no two Pods are on one node."""

    def make(self, name: str) -> None:
        """Create an instance, if its name is free."""
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in self.rng.choice(CLAIMS)]
        disks = [{"name": volume["name"], "disk": {"bus": "virtio"}} for volume in volumes]
        spec = {"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": disks}}, "volumes": volumes}
        meta = {"name": name, "finalizers": [VMI_FINALIZER]}
        if self.store.find(VMI, Key("default", name)) is None:
            self.store.create(VMI, "default", {"metadata": meta, "spec": spec})

    async def step(self) -> None:
        leader = self.rng.choice(self.leaders)
        name = self.rng.choice(NAMES)
        chance = self.rng.random()
        if chance < 0.4:
            await leader.work(Key("default", name))
        elif chance < 0.65:
            for cache in (leader.caches[VMI], leader.caches[POD]):
                for _unused in range(self.rng.randint(0, 4)):
                    cache.advance()
        elif chance < 0.86:
            self.run_kubelet()
        elif chance < 0.95:
            if leader.unreliable.late:
                leader.unreliable.deliver()
        elif chance < 0.97:
            self.collect_garbage()
        elif chance < 0.985:
            self.change(Key("default", name))
        else:  # a new leader knows nothing of the former one, whose late writes may still arrive
            former = leader.unreliable.late
            self.leaders[self.leaders.index(leader)] = new = Leader(self.store, self.rng)
            new.unreliable.late.extend(former)
        self.check()

    def change(self, key: Key) -> None:
        """Let a user create or delete an instance, with its finalizer or without it."""
        if self.store.find(VMI, key) is None:
            self.make(key.name)
            return
        if self.rng.random() < 0.5:
            self.store.patch(VMI, key, {"metadata": {"finalizers": None}})
        with suppress(NotFound):  # it was being deleted, and only its finalizer kept it
            self.store.delete(VMI, key)

    def run_kubelet(self) -> None:
        """Let one Pod come up, or end and go if it was deleted."""
        pods = self.store.list(POD)
        if pods:
            self.move(*self.rng.choice(pods))

    def move(self, key: Key, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        is_deleting = "deletionTimestamp" in pod["metadata"]
        if is_deleting and pod["status"]["phase"] in OVER:
            self.store.finish_pod(key, uid)
        elif is_deleting:
            self.store.set_pod(key, uid, status={"phase": "Succeeded"})
        elif pod["status"]["phase"] == "Pending" and not self._is_attached_elsewhere(key, pod):
            self.store.set_pod(key, uid, status={"phase": "Running", **UP}, node="node-1")

    def _is_attached_elsewhere(self, key: Key, pod: Json) -> bool:
        """Tell whether another Pod has a device of this one, on another node."""
        others = [other for name, other in self.store.list(POD) if name != key]
        running = [other for other in others if other["status"]["phase"] == "Running"]
        return self.is_attached_once and any(_claims(other) & _claims(pod) for other in running)

    def collect_garbage(self) -> None:
        """Delete the Pods whose owners are gone."""
        uids = {vmi["metadata"]["uid"] for _key, vmi in self.store.list(VMI)}
        for key, pod in list(self.store.list(POD)):
            if pod["metadata"]["ownerReferences"][0]["uid"] not in uids:
                self.store.delete(POD, key)

    def check(self) -> None:
        for key, vmi in self.store.list(VMI):
            self.granted.update(dict.fromkeys(vmi.get("status", {}).get("activePods", ()), key))
        guests = [pod for _key, pod in self.store.list(POD) if self._has_guest(pod)]
        for claim in ("x", "y"):
            users = [pod["metadata"]["name"] for pod in guests if claim in _claims(pod)]
            assert len(users) <= 1, f"guests of {users} write to the device of {claim}"
        for pod in guests:
            is_wanted = self._is_wanted(pod)
            assert not (is_wanted and "deletionTimestamp" in pod["metadata"]), f"the guest of {pod} is stopped"

    def _has_guest(self, pod: Json) -> bool:
        return pod["metadata"]["uid"] in self.granted and pod["status"]["phase"] not in OVER

    def _is_wanted(self, pod: Json) -> bool:
        """Tell whether nobody has deleted the Pod's instance."""
        vmi = self.store.find(VMI, self.granted[pod["metadata"]["uid"]])
        is_its = vmi is not None and pod["metadata"]["ownerReferences"][0]["uid"] == vmi["metadata"]["uid"]
        return vmi is not None and is_its and "deletionTimestamp" not in vmi["metadata"]

    async def settle(self) -> None:
        """Let all late writes arrive, one leader work, and each guest end: each instance has its turn."""
        for leader in self.leaders:
            while leader.unreliable.late:
                leader.unreliable.deliver()
                self.check()
        leader = self.leaders[0]
        leader.unreliable.is_reliable = True
        for _unused in range(ROUNDS):
            version = self.store.version
            leader.catch_up()
            for key in sorted(leader.queue):
                await leader.work(key)
                leader.catch_up()
                self.check()
            self.collect_garbage()
            for pod, body in list(self.store.list(POD)):
                self.move(pod, body)
            if not self._waiting():
                return
            if self.store.version == version:
                self.end_guest()
        raise AssertionError(f"{self._waiting()} wait for ever")

    def _waiting(self) -> list[str]:
        return [
            f"{key} {vmi.get('status', {}).get('phase')}"
            for key, vmi in self.store.list(VMI)
            if not vmi.get("status", {}).get("activePods") and vmi.get("status", {}).get("phase") not in OVER
        ]

    def end_guest(self) -> None:
        """Let a guest shut down; if none runs, report the end of one whose Pod is gone, as for a node that is off."""
        for key, pod in list(self.store.list(POD)):
            if self._has_guest(pod):
                self.store.set_pod(key, pod["metadata"]["uid"], status={"phase": "Succeeded"})
                return
        for key, vmi in list(self.store.list(VMI)):
            if vmi.get("status", {}).get("phase") == "Unknown":
                self.store.patch(VMI, key, {"status": {"phase": "Failed"}}, subresource="status")


def _claims(pod: Json) -> set[str]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"]["volumes"]]
    return {source["claimName"] for source in sources if source is not None}
