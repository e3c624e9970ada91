# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM `web`, its instance, and the reconciler on a store with the API server's rules."""

from __future__ import annotations

from typing import Any

from kubevirt_api.names import VM_FINALIZER

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from tests.controlplane.simulation.controller import vm_reconciler
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import Json

WEB = Key("default", "web")
VM, VMI = VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
CREATE = "create VirtualMachineInstance"
START: Json = {"action": "Start"}
OLD_STOP: Json = {"action": "Stop", "uid": "older"}
"""Names an instance that does not exist any more."""


class Stage(SmallWorld):
    def __init__(self, strategy: str = "Always", *requests: Json, **template: Any) -> None:
        """requests: queued for the VM, which acted on its strategy before."""
        super().__init__()
        self.reconciler = vm_reconciler(overlays=self.overlays, api=self.api, clock=self.clock, events=self.recorder)
        self.make_vm(strategy, **template)
        self.start()
        if requests:
            self.queue(*requests)
            self.catch_up()

    def make_vm(self, strategy: str = "Always", **template: Any) -> None:
        spec = {"runStrategy": strategy, "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}, **template}}}
        self.store.create(VM, "default", {"metadata": {"name": "web", "finalizers": [VM_FINALIZER]}, "spec": spec})

    def queue(self, *requests: Json) -> None:
        status = {"runStrategy": self.vm["spec"]["runStrategy"], "stateChangeRequests": list(requests) or None}
        self.store.patch(VM, WEB, {"status": status}, subresource="status")

    def make_vmi(self, *owners: Json, phase: str = "Running") -> str:
        """Create the instance; return its UID."""
        meta = {"name": "web", "ownerReferences": list(owners), "finalizers": ["test/keep"]}
        spec = {"domain": {"memory": {"guest": "64Mi"}}}
        uid = self.store.create(VMI, "default", {"metadata": meta, "spec": spec})["metadata"]["uid"]
        self.patch_vmi({"phase": phase})
        return str(uid)

    def make_own_vmi(self, phase: str = "Running") -> str:
        return self.make_vmi(self.owner(), phase=phase)

    def patch_vmi(self, status: Json) -> None:
        self.store.patch(VMI, WEB, {"status": status}, subresource="status")

    def finalize_vmi(self) -> None:
        self.store.patch(VMI, WEB, {"metadata": {"finalizers": None}})

    def replace_vmi(self) -> None:
        """Delete the instance for good, and create another one with its name."""
        self.store.delete(VMI, WEB)
        self.finalize_vmi()
        self.make_own_vmi()

    def drop_vm(self) -> None:
        """Delete the VM for good."""
        self.store.delete(VM, WEB)
        self.store.patch(VM, WEB, {"metadata": {"finalizers": None}})

    def owner(self, *, controls: bool = True, uid: str | None = None) -> Json:
        reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "controller": controls}
        return {**reference, "uid": uid or self.vm["metadata"]["uid"]}

    def next_leader(self) -> None:
        """Go on in a process without any controller state."""
        self.overlays = {resource: ReadYourWritesCache(cache) for resource, cache in self.caches.items()}
        self.api = ReadYourWritesApi(self.direct, self.overlays)
        self.reconciler = vm_reconciler(overlays=self.overlays, api=self.api, clock=self.clock, events=self.recorder)
        self.calls.clear()

    async def run(self) -> Outcome:
        return await reconcile(self.reconciler, WEB)

    async def come_to_rest(self) -> None:
        """Run until nothing more is due; deleted instances are finalized, as the VMI controller does."""
        for _unused in range(8):
            self.catch_up()
            await self.run()
            if self.is_vmi_deleting:
                self.finalize_vmi()

    @property
    def vm(self) -> Json:
        return self.store.get(VM, WEB)

    @property
    def vmi(self) -> Json:
        return self.store.get(VMI, WEB)

    @property
    def is_vmi_deleting(self) -> bool:
        body = self.store.find(VMI, WEB)
        return body is not None and "deletionTimestamp" in body["metadata"]

    @property
    def requests(self) -> list[Json]:
        return self.vm["status"].get("stateChangeRequests") or []

    def condition(self, kind: str) -> Json | None:
        return next((condition for condition in self.vm["status"]["conditions"] if condition["type"] == kind), None)

    def reasons(self) -> list[str]:
        return self.recorder.reasons

    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("get ")]
