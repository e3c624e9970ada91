# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI with its reconciler on a store with the API server's rules, and changes that other parties make."""

from __future__ import annotations

from typing import Any

from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.clock import WrongClock
from tests.support.store import Json

WEB = Key("default", "web")
UP = {"containerStatuses": [{"name": "compute", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}


class Stage(SmallWorld):
    """A VMI with its reconciler, and changes that other parties make to its objects."""

    def __init__(self) -> None:
        super().__init__()
        spec = {"domain": {"memory": {"guest": "64Mi"}}}
        meta = {"name": "web", "finalizers": [VMI_FINALIZER]}
        self.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": meta, "spec": spec})
        self.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
        self.configuration = KubeVirtConfiguration()
        self.machines_clock = WrongClock(self.clock)
        self.reconciler = self.another()
        self.start()

    def another(self, **options: Any) -> VmiReconciler:
        """A reconciler of a new process, without any controller state."""
        return VmiReconciler(
            vmis=self.overlays[VIRTUAL_MACHINE_INSTANCE],
            pods=self.overlays[POD],
            nodes=self.overlays[NODE],
            api=self.api,
            clock=self.machines_clock,
            events=self.recorder,
            configuration=lambda: self.configuration,
            launcher_image="launcher",
            **options,
        )

    async def work(self) -> Outcome:
        self.calls.clear()
        outcome = await reconcile(self.reconciler, WEB)
        self.catch_up()
        return outcome

    async def until_begun(self) -> Key:
        await self.work()
        ((key, _unused),) = self.store.list(POD)
        return key

    async def until_granted(self) -> Key:
        key = await self.until_begun()
        self.place(key)
        await self.work()
        assert self.status["phase"] == "Scheduled"
        return key

    async def until_running(self) -> Key:
        key = await self.until_granted()
        self.patch_status({"phase": "Running"})
        self.catch_up()
        return key

    def place(self, key: Key, status: Json | None = None) -> None:
        uid = self.pod(key)["metadata"]["uid"]
        self.store.set_pod(key, uid, status={"phase": "Running", **(status or UP)}, node="node-1")
        self.catch_up()

    def lose(self, key: Key) -> None:
        """Delete the Pod by force, as users do while its node is disconnected."""
        self.store.delete(POD, key, grace_period_seconds=0)
        self.catch_up()

    def patch_status(self, status: Json) -> None:
        self.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"status": status}, subresource="status")

    def delete(self) -> None:
        self.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
        self.catch_up()

    def pod(self, key: Key) -> Json:
        return self.store.get(POD, key)

    @property
    def vmi(self) -> Json:
        return self.store.get(VIRTUAL_MACHINE_INSTANCE, WEB)

    @property
    def status(self) -> Json:
        status: Json = self.vmi["status"]
        return status

    @property
    def synchronized(self) -> tuple[str, str]:
        """The condition Synchronized: reason and message."""
        matching = [condition for condition in self.status.get("conditions", ()) if condition["type"] == "Synchronized"]
        return (matching[0]["reason"], matching[0]["message"]) if matching else ("", "")
