# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random operations on a pool: lost responses, caches that lag or relist, two leaders at once.

A VM is only created while fewer exist than are wanted, and only deleted while more exist, by what the leader can have
observed of the wanted number and of deletions by others.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_POOL, Key
from controlplane.engine.errors import Forbidden, Unavailable
from controlplane.engine.reconcile import reconcile
from tests.controlplane.virt_controller.members.stand import WEB
from tests.controlplane.virt_controller.pool.test_reconciler import POOL, VM, Process, Stand, template
from tests.support.store import Json

SEEDS = 20
STEPS = 150


class RandomPool:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.user = Stand(2)
        self.store = self.user.store
        self.leaders = [self._leader(), self._leader()]
        self.is_leader = False
        self.made = self.deleted = self.read = self.pools_read = 0
        self.ended: list[int] = []
        """The versions at which others deleted a VM."""
        self._create, self._delete, self._patch = self.store.create, self.store.delete, self.store.patch
        self.store.create, self.store.delete = self.create, self.delete  # type: ignore[method-assign]
        self.store.patch = self.patch  # type: ignore[method-assign]

    def _leader(self) -> Process:
        made = Process(self.store)
        made.start()
        return made

    def wanted(self) -> int:
        return int(self.store.get(POOL, WEB)["spec"]["replicas"])

    def asked(self) -> list[int]:
        """List the wanted numbers that the leader may use: the one in its cache of pools, and all newer ones."""
        versions = [version for version in self.store.histories[POOL.kind] if version.after is not None]
        observed = [version for version in versions if version.version <= self.pools_read][-1:]
        newer = [version for version in versions if version.version > self.pools_read]
        return [version.after["spec"]["replicas"] for version in (*observed, *newer) if version.after is not None]

    def there(self, *, going: bool = True) -> int:
        uid = self.store.get(POOL, WEB)["metadata"]["uid"]
        metas = (meta["metadata"] for meta in self.user.vms.values())
        ours = (meta for meta in metas if any(owner["uid"] == uid for owner in meta.get("ownerReferences", ())))
        return sum(going or "deletionTimestamp" not in meta for meta in ours)

    def create(self, resource: Any, namespace: str, body: Json) -> Json:
        self._may_fail()
        if resource == VIRTUAL_MACHINE and self.is_leader:
            key = Key(namespace, body["metadata"]["name"])
            before, is_new = self.there(), self.store.find(VM, key) is None
            assert not is_new or before < max(self.asked()), f"{before} are there, {self.asked()} wanted: {key} is made"
            self.made += is_new
        return self._answer(self._create(resource, namespace, body))

    def delete(self, resource: Any, key: Key, **how: Any) -> None:
        self._may_fail()
        staying = self.there(going=False)
        self._delete(resource, key, **how)
        if resource == VIRTUAL_MACHINE and self.is_leader:
            unseen = sum(version > self.read for version in self.ended)
            assert staying + unseen > min(self.asked()), f"{staying} stay, {self.asked()} wanted: {key} is deleted"
            self.deleted += 1
        self._answer({})

    def patch(self, resource: Any, key: Key, patch: Any, **how: Any) -> Json:
        self._may_fail()
        return self._answer(self._patch(resource, key, patch, **how))

    def _may_fail(self) -> None:
        if self.is_leader and self.rng.random() < 0.1:
            raise self.rng.choice((Unavailable("no answer, nothing happened"), Forbidden("quota")))

    def _answer(self, body: Json) -> Json:
        if self.is_leader and self.rng.random() < 0.1:
            raise Unavailable("it happened, and the answer is lost")
        return body

    async def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.45:
            cache = self.rng.choice([replica for leader in self.leaders for replica in leader.caches.values()])
            if cache.is_behind:
                cache.advance()
            elif self.rng.random() < 0.3:
                cache.bookmark()
        elif chance < 0.8:
            await self.work(self.rng.choice(self.leaders))
        elif chance < 0.83:
            self.leaders[self.rng.randrange(2)] = self._leader()
        else:
            self.happen()

    async def work(self, leader: Process) -> None:
        self.is_leader, self.read, self.pools_read = (
            True,
            leader.caches[VM].resource_version,
            leader.caches[POOL].resource_version,
        )
        await reconcile(leader.reconciler, WEB)
        self.is_leader = False

    def happen(self) -> None:
        names = sorted(self.user.vms)
        what = self.rng.choice(("scale", "delete", "finish", "finish", "template"))
        if what == "scale":
            self.store.patch(POOL, WEB, {"spec": {"replicas": self.rng.randrange(6)}})
        elif what == "delete" and names:
            self.store.delete(VM, Key("default", self.rng.choice(names)))
            self.ended.append(self.store.version)
        elif what == "template":
            changed = template(hostname=f"h{self.rng.randrange(3)}")
            self.store.patch(POOL, WEB, {"spec": {"virtualMachineTemplate": changed}})
        else:
            self.user.finish()

    async def settle(self) -> None:
        """Let one leader work that receives every response."""
        self.store.create, self.store.delete = self._create, self._delete  # type: ignore[method-assign]
        self.store.patch = self._patch  # type: ignore[method-assign]
        leader = self.leaders[0]
        for _unused in range(20):
            leader.catch_up()
            await reconcile(leader.reconciler, WEB)
            self.user.finish()
        reported = self.store.get(VIRTUAL_MACHINE_POOL, WEB)["status"].get("replicas", 0)
        assert len(self.user.vms) == self.wanted() == reported
        revisions = {vm["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] for vm in self.user.vms.values()}
        assert len(revisions) <= 1


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
async def test_no_surplus_is_created_and_no_wanted_vm_deleted(seed: int) -> None:
    pool = RandomPool(seed)
    for _unused in range(STEPS):
        await pool.step()
    await pool.settle()
