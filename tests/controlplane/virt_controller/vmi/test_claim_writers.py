# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two instances on one block device: the second waits until the first has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.claim import Claims, PersistentVolumeClaim
from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.engine.errors import ApiError, Conflict, Forbidden, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld, StoreApi
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
FIRST, SECOND = Key("default", "a"), Key("default", "b")
CONFIGURATION = KubeVirtConfiguration()
CLAIM: Json = {"persistentVolumeClaim": {"claimName": "disk"}}


class SlowApi(StoreApi):
    """Creates nothing before `answers` is set."""

    __slots__ = ("answers",)

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.answers = asyncio.Event()

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        await self.answers.wait()
        return await super().create(resource, namespace, body)


class Stage(SmallWorld):
    """Instances on the claim `disk`, and their reconciler."""

    def __init__(self, *, volume_mode: str = "Block", volume: Json = CLAIM) -> None:
        super().__init__()
        claim = decode({"spec": {"accessModes": ["ReadWriteMany"], "volumeMode": volume_mode}}, PersistentVolumeClaim)
        self._claims: Claims = {"disk": claim, "other": claim}
        self.make(FIRST, CLAIM)
        self.make(SECOND, volume)
        self.reconciler = self.another()
        self.start()

    def make(self, key: Key, volume: Json) -> None:
        disks = [{"name": "v", "disk": {"bus": "virtio"}}]
        domain = {"memory": {"guest": "64Mi"}, "devices": {"disks": disks}}
        spec = {"domain": domain, "volumes": [{"name": "v", **volume}]}
        meta = {"name": key.name, "finalizers": [VMI_FINALIZER]}
        self.store.create(VMI, key.namespace, {"metadata": meta, "spec": spec})

    def another(self) -> VmiReconciler:
        def claims(_namespace: str, _volumes: Iterable[Volume]) -> Claims:
            return self._claims

        return VmiReconciler(
            vmis=self.overlays[VMI],
            pods=self.overlays[POD],
            nodes=self.overlays[NODE],
            api=self.api,
            clock=self.clock,
            events=self.recorder,
            configuration=lambda: CONFIGURATION,
            launcher_image="launcher",
            claims=claims,
        )

    async def work(self, key: Key) -> Outcome:
        outcome = await reconcile(self.reconciler, key)
        self.catch_up()
        return outcome

    async def both(self) -> None:
        for _unused in range(3):
            for key in (FIRST, SECOND):
                await self.work(key)

    @property
    def started(self) -> list[str]:
        """The instances with a Pod."""
        pods = [pod["metadata"]["ownerReferences"][0]["name"] for _unused, pod in self.store.list(POD)]
        return sorted(pods)

    def patch_status(self, key: Key, status: Json) -> None:
        self.store.patch(VMI, key, {"status": status}, subresource="status")
        self.catch_up()

    def condition(self, key: Key) -> Json | None:
        listed = self.store.get(VMI, key)["status"].get("conditions", ())
        return next((item for item in listed if item["type"] == "Synchronized"), None)

    def delete_pods(self) -> None:
        for key, _unused in list(self.store.list(POD)):
            self.store.delete(POD, key, grace_period_seconds=0)
        self.catch_up()


async def test_the_second_waits_and_says_for_whom() -> None:
    stage = Stage()
    await stage.both()
    assert stage.started == ["a"]
    waits = stage.condition(SECOND)
    assert waits is not None
    assert (waits["status"], waits["reason"]) == ("False", "ClaimInUse")
    assert "claim disk of default/a" in waits["message"]
    assert "ClaimInUse" in stage.recorder.reasons


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_it_starts_when_the_first_has_ended(end: str) -> None:
    stage = Stage()
    await stage.both()
    stage.patch_status(FIRST, {"phase": end})
    await stage.both()
    assert stage.started == ["b"], "the Pod of the first was never used"
    assert stage.condition(SECOND) is None


async def test_it_waits_for_a_guest_whose_pod_was_removed_by_force() -> None:
    """The guest may run on a node that is disconnected."""
    stage = Stage()
    await stage.work(FIRST)
    stage.patch_status(FIRST, {"phase": "Unknown", "activePods": {"p": "node-1"}, "nodeName": "node-1"})
    stage.delete_pods()
    await stage.work(SECOND)
    await stage.work(SECOND)
    assert stage.started == []


@pytest.mark.parametrize(
    "options",
    [
        {"volume_mode": "Filesystem"},
        {"volume": {"persistentVolumeClaim": {"claimName": "disk", "readOnly": True}}},
        {"volume": {"persistentVolumeClaim": {"claimName": "other"}}},
    ],
    ids=["a file, which QEMU locks", "a reader", "another claim"],
)
async def test_others_start(options: Any) -> None:
    stage = Stage(**options)
    await stage.both()
    assert stage.started == ["a", "b"]


async def test_a_data_volume_is_its_claim() -> None:
    stage = Stage(volume={"dataVolume": {"name": "disk"}})
    await stage.both()
    assert stage.started == ["a"]


async def test_of_two_that_start_at_once_one_waits() -> None:
    """Both have decided before either Pod exists."""
    stage, worlds = Stage(), {}
    for key in (FIRST, SECOND):
        await _record_attempt(stage, key)
    slow = SlowApi(stage.store)
    stage.api = ReadYourWritesApi(slow, stage.overlays)
    stage.reconciler = stage.another()
    for key in (FIRST, SECOND):
        worlds[key] = stage.reconciler.observe(key)
    steps = {key: stage.reconciler.decide(_present(world)).steps[0] for key, world in worlds.items()}
    first = asyncio.create_task(stage.reconciler.apply(_present(worlds[FIRST]), steps[FIRST]))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    with pytest.raises(Conflict, match="default/a"):
        await stage.reconciler.apply(_present(worlds[SECOND]), steps[SECOND])  # type: ignore[arg-type]
    slow.answers.set()
    await first
    assert stage.started == ["a"]


@pytest.mark.parametrize(
    ("error", "starts"), [(Forbidden("quota"), True), (Unavailable("no answer"), False)], ids=["refused", "lost"]
)
async def test_a_create_counts_as_long_as_it_may_have_had_an_effect(error: ApiError, starts: bool) -> None:
    stage = Stage()
    for key in (FIRST, SECOND):
        await _record_attempt(stage, key)
    stage.direct.refusals["create Pod"] = error
    await stage.work(FIRST)
    del stage.direct.refusals["create Pod"]
    await stage.work(SECOND)
    assert stage.started == (["b"] if starts else [])
    await stage.both()
    assert stage.started == (["b"] if starts else ["a"]), "nobody waits for ever"


async def _record_attempt(stage: Stage, key: Key) -> None:
    stage.direct.refusals["create Pod"] = Conflict("not yet")
    await stage.work(key)
    del stage.direct.refusals["create Pod"]
    assert stage.store.get(VMI, key)["status"]["attempt"] == 1


def _present(world: Any) -> Any:
    assert world is not None
    return world
