# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two instances on one block device: the second waits until the first has ended, whatever was lost meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from kubevirt_api.names import DOMAIN, LAUNCHER_ROLE, ROLE, VMI_FINALIZER

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
from tests.controlplane.virt_controller.vmi.stage import UP
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


class LateApi(StoreApi):
    """The first create gets no answer, and arrives later."""

    __slots__ = ("late",)

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.late: tuple[Resource, str, Json] | None = None

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        if self.late is None:
            self.late = (resource, namespace, body)
            raise Unavailable("no answer")
        return await super().create(resource, namespace, body)


class Stage(SmallWorld):
    """Instances on the claim `disk`, and their reconciler."""

    def __init__(self, *, volume_mode: str = "Block", volume: Json = CLAIM) -> None:
        super().__init__()
        self.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
        claim = decode({"spec": {"accessModes": ["ReadWriteMany"], "volumeMode": volume_mode}}, PersistentVolumeClaim)
        self.claims: Claims = {"disk": claim, "other": claim}
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
            return self.claims

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

    def pods_of(self, vmi: Key) -> list[tuple[Key, Json]]:
        listed = self.store.list(POD)
        return [(key, pod) for key, pod in listed if pod["metadata"]["ownerReferences"][0]["name"] == vmi.name]

    def bring_up(self, vmi: Key) -> None:
        for key, pod in self.pods_of(vmi):
            self.store.set_pod(key, pod["metadata"]["uid"], status={"phase": "Running", **UP}, node="node-1")
        self.catch_up()

    def finish_pods(self, vmi: Key) -> None:
        for key, pod in list(self.pods_of(vmi)):
            self.store.finish_pod(key, pod["metadata"]["uid"])
        self.catch_up()

    def abandon(self, vmi: Key) -> None:
        """Remove a VMI and leave its Pod, as a user who removes the finalizer."""
        self.store.patch(VMI, vmi, {"metadata": {"finalizers": None}})
        self.store.delete(VMI, vmi)
        self.catch_up()

    def phase(self, key: Key) -> tuple[str, int]:
        """Return phase and attempt."""
        status = self.store.get(VMI, key)["status"]
        return status["phase"], status["attempt"]

    def is_granted(self, key: Key) -> bool:
        return bool(self.store.get(VMI, key)["status"].get("activePods"))

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


async def two_pods(late: Key) -> Stage:
    """Both have a Pod: a create of the former leader arrived after the next leader had created the other Pod."""
    stage = Stage()
    for key in (FIRST, SECOND):
        await _record_attempt(stage, key)
    api = LateApi(stage.store)
    stage.api = ReadYourWritesApi(api, stage.overlays)
    stage.reconciler = stage.another()
    await stage.work(late)
    assert stage.started == []
    stage.reconciler = stage.another()
    await stage.work(_other(late))
    assert stage.started == [_other(late).name]
    assert api.late is not None
    stage.store.create(*api.late)
    stage.catch_up()
    assert stage.started == ["a", "b"]
    return stage


@pytest.mark.parametrize("late", [FIRST, SECOND], ids=str)
async def test_of_two_with_pods_the_first_by_name_is_granted_and_the_other_gives_up_its_pod(late: Key) -> None:
    stage = await two_pods(late)
    stage.bring_up(FIRST)
    stage.bring_up(SECOND)
    await stage.work(FIRST)
    assert not stage.is_granted(FIRST), "the other Pod may be granted by a leader that sees only that one"
    await stage.work(SECOND)
    assert stage.phase(SECOND) == ("Scheduling", 2)
    waits = stage.condition(SECOND)
    assert waits is not None
    assert waits["reason"] == "ClaimInUse"
    assert "claim disk of default/a" in waits["message"]
    assert "failedAttempts" not in stage.store.get(VMI, SECOND)["status"], "the node is not the cause"
    await stage.work(FIRST)
    assert stage.is_granted(FIRST), "it need not wait for the end of a Pod that cannot be granted any more"
    assert "deletionTimestamp" in stage.pods_of(SECOND)[0][1]["metadata"]
    stage.finish_pods(SECOND)
    await stage.both()
    assert stage.started == ["a"]
    stage.patch_status(FIRST, {"phase": "Succeeded"})
    await stage.both()
    assert stage.started[-1] == "b"
    stage.bring_up(SECOND)
    await stage.work(SECOND)
    assert stage.is_granted(SECOND)


async def test_one_that_is_not_up_gives_way_too() -> None:
    """Its Pod may keep the device on its node, or wait for it."""
    stage = await two_pods(FIRST)
    await stage.work(SECOND)
    assert stage.started == ["a"]
    assert stage.phase(SECOND) == ("Scheduling", 2)


async def test_one_that_is_granted_goes_before_one_whose_name_comes_first() -> None:
    stage = await two_pods(FIRST)
    uid = stage.pods_of(SECOND)[0][1]["metadata"]["uid"]
    stage.patch_status(SECOND, {"phase": "Scheduled", "activePods": {uid: "node-1"}, "nodeName": "node-1"})
    stage.bring_up(FIRST)
    await stage.both()
    assert not stage.is_granted(FIRST)
    assert stage.phase(FIRST) == ("Scheduling", 2)
    assert stage.phase(SECOND) == ("Scheduled", 1)


async def test_a_running_guest_is_not_stopped() -> None:
    """Both were granted before the writers were looked for."""
    stage = await two_pods(FIRST)
    for key in (FIRST, SECOND):
        uid = stage.pods_of(key)[0][1]["metadata"]["uid"]
        stage.patch_status(key, {"phase": "Running", "activePods": {uid: "node-1"}, "nodeName": "node-1"})
        stage.bring_up(key)
    before = [pod["metadata"]["resourceVersion"] for _unused, pod in stage.store.list(POD)]
    await stage.both()
    assert [pod["metadata"]["resourceVersion"] for _unused, pod in stage.store.list(POD)] == before
    assert [stage.phase(key) for key in (FIRST, SECOND)] == [("Running", 1)] * 2
    assert _present(stage.reconciler.observe(FIRST)).claim_writers == {}


async def test_the_device_of_a_claim_that_is_being_deleted_has_one_writer() -> None:
    """Its Pods keep the claim from being deleted."""
    stage = await two_pods(FIRST)
    stage.claims = {}
    stage.bring_up(SECOND)
    await stage.work(SECOND)
    assert not stage.is_granted(SECOND)
    assert stage.phase(SECOND) == ("Scheduling", 2)


async def test_a_migrations_target_of_the_same_instance_does_not_count() -> None:
    stage = Stage()
    await stage.work(FIRST)
    ((_unused, pod),) = stage.pods_of(FIRST)
    meta = {**pod["metadata"], "name": "target"}
    stage.store.create(POD, "default", {"metadata": meta, "spec": pod["spec"]})
    stage.catch_up()
    stage.bring_up(FIRST)
    await stage.work(FIRST)
    assert stage.is_granted(FIRST)


def _keep(_stage: Stage) -> None:
    """Leave the Pod as it is."""


def _take_owner_off(stage: Stage) -> None:
    """As the garbage collector does for a deletion with propagationPolicy Orphan."""
    for key, _unused in list(stage.store.list(POD)):
        stage.store.patch(POD, key, {"metadata": {"ownerReferences": None}})


def _make_again(stage: Stage) -> None:
    stage.make(FIRST, {"persistentVolumeClaim": {"claimName": "other"}})


def _make_unreadable(stage: Stage) -> None:
    _make_again(stage)
    stage.store.patch(VMI, FIRST, {"spec": {"domain": 7}})


@pytest.mark.parametrize("change", [_keep, _take_owner_off, _make_again, _make_unreadable])
@pytest.mark.parametrize("is_over", [False, True], ids=["the Pod goes", "the Pod is over"])
async def test_a_pod_whose_instance_is_gone_is_waited_for(change: Any, is_over: bool) -> None:
    stage = Stage()
    await stage.work(FIRST)
    stage.bring_up(FIRST)
    await stage.work(FIRST)
    ((key, pod),) = stage.store.list(POD)
    stage.abandon(FIRST)
    change(stage)
    stage.catch_up()
    for _unused in range(3):
        await stage.work(SECOND)
    assert len(stage.store.list(POD)) == 1
    waits = stage.condition(SECOND)
    assert waits is not None
    assert f"claim disk of default/a, which is gone (launcher Pod {key.name}), and two guests" in waits["message"]
    assert "delete the Pod by force" in waits["message"]
    if is_over:
        stage.store.set_pod(key, pod["metadata"]["uid"], status={"phase": "Succeeded"})
    else:
        stage.store.finish_pod(key, pod["metadata"]["uid"])
    stage.catch_up()
    await stage.work(SECOND)
    assert len(stage.store.list(POD)) == 1 + is_over
    assert stage.condition(SECOND) is None


async def test_one_with_a_pod_gives_way_to_a_pod_whose_instance_is_gone() -> None:
    stage = await two_pods(SECOND)
    stage.abandon(SECOND)
    stage.bring_up(FIRST)
    await stage.work(FIRST)
    assert not stage.is_granted(FIRST)
    assert stage.phase(FIRST) == ("Scheduling", 2)


PLAIN: Json = {"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}
READING: Json = {"name": "v", "persistentVolumeClaim": {"claimName": "disk", "readOnly": True}}
ANOTHER: Json = {"name": "v", "persistentVolumeClaim": {"claimName": "other"}}
OF_GONE: Json = {"labels": {ROLE: LAUNCHER_ROLE}, "annotations": {DOMAIN: "gone"}}


@pytest.mark.parametrize(
    ("meta", "namespace", "volumes", "starts"),
    [
        (OF_GONE, "default", [PLAIN], False),
        ({"labels": {ROLE: LAUNCHER_ROLE}}, "default", [PLAIN], True),
        (OF_GONE, "default", [READING], True),
        (OF_GONE, "default", [READING, PLAIN], False),
        (OF_GONE, "default", [ANOTHER], True),
        (OF_GONE, "default", [], True),
        (OF_GONE, "elsewhere", [PLAIN], True),
    ],
    ids=["a launcher", "no launcher", "reads", "reads and writes", "another claim", "none", "another namespace"],
)
async def test_only_a_launcher_that_may_write_counts(meta: Json, namespace: str, volumes: Any, starts: bool) -> None:
    stage = Stage()
    stage.store.create(POD, namespace, {"metadata": {"name": "p", **meta}, "spec": {"volumes": volumes}})
    stage.catch_up()
    await stage.work(FIRST)
    assert bool(len(stage.store.list(POD)) - 1) is starts


async def test_a_grant_counts_before_the_cache_has_it() -> None:
    """Its Pod is removed by force meanwhile."""
    stage = Stage()
    await stage.work(FIRST)
    stage.bring_up(FIRST)
    await reconcile(stage.reconciler, FIRST)
    assert stage.is_granted(FIRST)
    ((key, _unused),) = stage.store.list(POD)
    stage.store.delete(POD, key, grace_period_seconds=0)
    stage.catch_up(POD)
    assert {writer.vmi for writer in _present(stage.reconciler.observe(SECOND)).claim_writers.values()} == {FIRST}


async def test_a_pod_counts_before_the_cache_has_it() -> None:
    stage = Stage()
    await reconcile(stage.reconciler, FIRST)
    assert stage.started == ["a"]
    assert {writer.vmi for writer in _present(stage.reconciler.observe(SECOND)).claim_writers.values()} == {FIRST}


async def test_one_that_goes_first_is_named_before_those_that_give_way() -> None:
    stage = await two_pods(FIRST)
    third = Key("default", "c")
    stage.make(third, CLAIM)
    stage.catch_up()
    await stage.work(third)
    assert _present(stage.reconciler.observe(third)).claim_writers["disk"].vmi == FIRST
    assert _present(stage.reconciler.observe(FIRST)).claim_writers["disk"].gives_way
    assert _present(stage.reconciler.observe(SECOND)).claim_writers["disk"].vmi == FIRST
    assert not _present(stage.reconciler.observe(SECOND)).claim_writers["disk"].gives_way


async def test_a_reservation_ends_with_its_instance() -> None:
    stage = Stage()
    for key in (FIRST, SECOND):
        await _record_attempt(stage, key)
    stage.direct.refusals["create Pod"] = Unavailable("no answer")
    await stage.work(FIRST)
    del stage.direct.refusals["create Pod"]
    stage.abandon(FIRST)
    await stage.work(FIRST)
    await stage.work(SECOND)
    assert stage.started == ["b"]


async def test_a_reservation_elsewhere_does_not_count() -> None:
    stage, far = Stage(), Key("elsewhere", "a")
    stage.make(far, CLAIM)
    stage.catch_up()
    stage.direct.refusals["create Pod"] = Unavailable("no answer")
    await stage.work(far)
    await stage.work(far)
    del stage.direct.refusals["create Pod"]
    await stage.both()
    assert stage.started == ["a"]


async def test_the_cost_does_not_grow_with_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    await stage.both()
    read, get = [], stage.overlays[VMI].get

    def recorded(key: Key) -> bytes | None:
        read.append(key)
        return get(key)

    monkeypatch.setattr(stage.overlays[VMI], "get", recorded)
    for number in range(50):
        stage.make(Key("default", f"0{number}"), CLAIM)
    stage.catch_up()
    read.clear()
    world = _present(stage.reconciler.observe(Key("default", "00")))
    assert world.claim_writers["disk"].vmi == FIRST
    assert len(read) < 5


def _other(key: Key) -> Key:
    return SECOND if key == FIRST else FIRST


async def _record_attempt(stage: Stage, key: Key) -> None:
    stage.direct.refusals["create Pod"] = Conflict("not yet")
    await stage.work(key)
    del stage.direct.refusals["create Pod"]
    assert stage.store.get(VMI, key)["status"]["attempt"] == 1


def _present(world: Any) -> Any:
    assert world is not None
    return world
