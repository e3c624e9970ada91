# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest on node-1, its migration, the controllers of VMI and migration, and all other parties, played by methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevirt_api.names import MIGRATION_FINALIZER, SCHEDULABLE, VMI_FINALIZER

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import (
    MIGRATION_POLICY,
    NAMESPACE,
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.engine.errors import Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.evacuation.reconciler import EvacuationReconciler
from controlplane.virt_controller.migration.node_labels import node_label_reader, other_nodes_reader
from controlplane.virt_controller.migration.reconciler import MigrationReconciler
from controlplane.virt_controller.migration.unfinished_migrations import UnfinishedMigrations
from controlplane.virt_controller.orphan.reconciler import OrphanReconciler
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld, StoreApi
from tests.support.store import Json, Store

RESOURCES = (VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION, POD, NODE, MIGRATION_POLICY, NAMESPACE)
WEB, JOB = Key("default", "web"), Key("default", "job")
STAMP = "2026-01-01T00:00:00Z"
UP = {"phase": "Running", "containerStatuses": [{"name": "compute", "state": {"running": {"startedAt": STAMP}}}]}
ENDED = {"phase": "Failed", "containerStatuses": [{"name": "compute", "state": {"terminated": {"exitCode": 137}}}]}
MIGRATABLE = [{"type": "LiveMigratable", "status": "True"}]


class LossyApi(StoreApi):
    """Carries out every request, and loses the responses to some of them."""

    lost: str = ""

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        return self._answer(f"create {resource.kind}", await super().create(resource, namespace, body))

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **options: Any) -> Json:
        verb = "patch status of" if options.get("subresource") else "patch"
        return self._answer(f"{verb} {resource.kind}", await super().patch(resource, key, patch, **options))

    def _answer(self, call: str, answer: Json) -> Json:
        if call == self.lost:
            raise Unavailable("no answer")
        return answer


def add_nodes(store: Store) -> None:
    for number in (1, 2, 3):
        labels = {SCHEDULABLE: "true", "host-model-cpu.node.kubevirt.io/EPYC": "true"}
        store.create(NODE, "", {"metadata": {"name": f"node-{number}", "labels": labels}, "spec": {}})


class Stage(SmallWorld):
    """See above. Each method is a step of another party; `work` runs virt-controller until nothing is left to do."""

    def __init__(self, store: Store | None = None) -> None:
        """store: that of another stage, for a second virt-controller on the same objects."""
        super().__init__(RESOURCES, store)
        self.direct = self.lossy = LossyApi(self.store)
        self.api = ReadYourWritesApi(self.direct, self.overlays)
        self.configuration = KubeVirtConfiguration()
        self.reconciler, self.vmi_reconciler, self.evacuation, self.orphan = self.another()
        if store is None:
            add_nodes(self.store)
        self.start()

    def another(self) -> tuple[MigrationReconciler, VmiReconciler, EvacuationReconciler, OrphanReconciler]:
        """A virt-controller process without any controller state."""
        parts: dict[str, Any] = {
            "vmis": self.overlays[VIRTUAL_MACHINE_INSTANCE],
            "api": self.api,
            "clock": self.clock,
            "events": self.recorder,
            "configuration": lambda: self.configuration,
        }
        pods, nodes = self.overlays[POD], self.overlays[NODE]
        migrations = self.overlays[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        self.unfinished = UnfinishedMigrations(migrations, parts["vmis"], lambda pod: pods.get(pod) is not None)
        return (
            MigrationReconciler(
                **parts,
                migrations=migrations,
                pods=pods,
                policies=self.overlays[MIGRATION_POLICY],
                unfinished=self.unfinished,
                launcher_image="launcher:2",
                node_labels=node_label_reader(nodes),
                other_nodes=other_nodes_reader(nodes),
            ),
            VmiReconciler(**parts, pods=pods, nodes=nodes, launcher_image="launcher:1"),
            EvacuationReconciler(**parts, nodes=nodes, migrations=migrations),
            OrphanReconciler(
                vmis=parts["vmis"],
                pods=pods,
                migrations=migrations,
                api=self.api,
                clock=self.clock,
                events=self.recorder,
            ),
        )

    async def work(self, *names: str) -> Outcome:
        """Let virt-controller reconcile the instances and their migrations until nothing changes."""
        self.calls.clear()
        outcome = Outcome()
        for _unused in range(6):
            before = self.store.version
            for key, _body in self.store.list(VIRTUAL_MACHINE_INSTANCE_MIGRATION):
                result = await reconcile(self.reconciler, key)
                outcome = result if key == JOB or key.name in names else outcome
                self.catch_up()
            for key, _body in self.store.list(VIRTUAL_MACHINE_INSTANCE):
                await reconcile(self.vmi_reconciler, key)
                await reconcile(self.orphan, key)
                self.catch_up()
            if self.store.version == before:
                break
        return outcome

    async def run_guest(
        self, name: str = "web", node: str = "node-1", spec: Json | None = None, *, namespace: str = "default"
    ) -> None:
        """Create a VMI and bring its guest up."""
        key = Key(namespace, name)
        self.store.create(
            VIRTUAL_MACHINE_INSTANCE,
            namespace,
            {
                "metadata": {"name": name, "finalizers": [VMI_FINALIZER]},
                "spec": {"domain": {"memory": {"guest": "64Mi"}}, **(spec or {})},
            },
        )
        self.catch_up()
        await reconcile(self.vmi_reconciler, key)
        self.catch_up()
        uid = self.instance(key)["metadata"]["uid"]
        (pod,) = [
            pod_key for pod_key, body in self.store.list(POD) if body["metadata"]["ownerReferences"][0]["uid"] == uid
        ]
        self.set_pod(pod, node=node)
        await reconcile(self.vmi_reconciler, key)
        self.tell_instance({"phase": "Running", "conditions": MIGRATABLE}, key)

    def migrate(self, name: str = "job", vmi: str = "web", *, namespace: str = "default", **spec: Any) -> None:
        meta = {"name": name, "finalizers": [MIGRATION_FINALIZER]}
        body = {"metadata": meta, "spec": {"vmiName": vmi, **spec}}
        self.store.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, namespace, body)
        self.catch_up()

    async def until(self, phase: str) -> None:
        """Continue to a phase, with every party doing its part."""
        if not self.store.list(VIRTUAL_MACHINE_INSTANCE):
            await self.run_guest()
        if self.store.find(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB) is None:
            self.migrate()
        await self.work()
        steps = {
            "Scheduling": None,
            "PreparingTarget": self.bring_up_target,
            "TargetReady": self.open_door,
            "Running": self.begin,
            "ready": self.arrive,
            "Succeeded": self.leave,
        }
        for reached, step in steps.items():
            if step is not None:
                step()
                await self.work()
            if reached == phase:
                return
        raise AssertionError(phase)

    # the scheduler, the kubelet
    def set_pod(self, key: Key, status: Json | None = None, node: str | None = None) -> None:
        """Let the kubelet report a Pod's status; by default, that it is ready."""
        uid = self.store.get(POD, key)["metadata"]["uid"]
        self.store.set_pod(key, uid, status=UP if status is None else status, node=node)
        self.catch_up()

    def bring_up_target(self) -> None:
        self.set_pod(self.target, node="node-2")

    def end_pod(self, key: Key) -> None:
        self.set_pod(key, ENDED)

    def lose_pod(self, key: Key) -> None:
        self.store.delete(POD, key, grace_period_seconds=0)
        self.catch_up()

    # the target's virt-handler
    def open_door(self) -> None:
        self.tell(targetNodeAddress="10.0.0.2", targetDirectMigrationNodePorts={"4321": 0})

    def arrive(self) -> None:
        self.tell(targetNodeDomainDetected=True, targetNodeDomainReadyTimestamp=STAMP)

    # the source's
    def begin(self) -> None:
        self.tell(startTimestamp=STAMP, mode="PreCopy")

    def leave(self) -> None:
        self.tell(completed=True, endTimestamp=STAMP)

    def fail(self, why: str = "the tunnel broke") -> None:
        self.tell(failed=True, completed=True, failureReason=why, endTimestamp=STAMP)

    def tell(self, **fields: Any) -> None:
        self.tell_instance({"migrationState": fields})

    # users
    def cancel(self) -> None:
        self.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)
        self.catch_up()

    def cancel_unseen(self) -> None:
        """Delete the migration while no cache observes it."""
        self.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)

    def limit(self, cluster: int = 5, node: int = 2) -> KubeVirtConfiguration:
        settings = MigrationConfiguration(
            parallel_migrations_per_cluster=cluster, parallel_outbound_migrations_per_node=node
        )
        return KubeVirtConfiguration(migrations=settings)

    def delete_instance(self) -> None:
        self.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
        self.catch_up()

    def tell_instance(self, status: Json, key: Key = WEB) -> None:
        self.store.patch(VIRTUAL_MACHINE_INSTANCE, key, {"status": status}, subresource="status")
        self.catch_up()

    # the objects
    def instance(self, key: Key = WEB) -> Json:
        return self.store.get(VIRTUAL_MACHINE_INSTANCE, key)

    def phase(self, key: Key = JOB) -> str:
        """Phase of a migration; "gone" if it does not exist."""
        body = self.store.find(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key)
        return "gone" if body is None else body.get("status", {}).get("phase", "")

    @property
    def job(self) -> Json:
        return self.store.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)

    @property
    def status(self) -> Json:
        status: Json = self.instance()["status"]
        return status

    @property
    def state(self) -> Json:
        state: Json = self.status.get("migrationState", {})
        return state

    @property
    def pods(self) -> list[Key]:
        """Pods that exist and are not being deleted."""
        return [key for key, body in self.store.list(POD) if "deletionTimestamp" not in body["metadata"]]

    @property
    def target(self) -> Key:
        (pod,) = [key for key, body in self.store.list(POD) if "-m0" in key.name]
        return pod

    @property
    def source(self) -> Key:
        (pod,) = [key for key, body in self.store.list(POD) if key.name.endswith("-1")]
        return pod

    @property
    def reasons(self) -> list[str]:
        return self.recorder.reasons
