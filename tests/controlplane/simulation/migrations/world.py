# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of migrations: three nodes, two machines, and users who request migrations."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import msgspec

from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.resources import (
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.configuration import Configuration
from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, collect_garbage, collect_pods, evict, has_taint
from tests.controlplane.simulation.ledger import controlling_uid
from tests.controlplane.simulation.listing import is_listed
from tests.controlplane.simulation.migrations.guest import MigratingLauncher, notices
from tests.controlplane.simulation.migrations.oracles import MigrationOracles, moving_of
from tests.controlplane.simulation.migrations.processes import MigratingHandler, unconditional_write
from tests.controlplane.simulation.migrations.tunnel import SHUT, Fabric
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.world import NAMES, World, is_unreachable
from tests.support.calls import Fate
from tests.support.clock import WrongClock
from tests.support.store import OVER, WITH_MIGRATIONS, Json, Store

VMI, MIGRATION = VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION
MOST_SOCKETS = 4
WIPED = 5
"""One of so many cancelled migrations is deleted at once, whatever is left of it."""
SETTINGS = MigrationConfiguration(progress_timeout=30, completion_timeout_per_gib=60)
"""Time limits in seconds: without progress, and in total."""
STOPPING = msgspec.structs.replace(SETTINGS, completion_timeout_per_gib=4, allow_workload_disruption=True)
"""Guests that do not converge in time are stopped."""


class MigrationPeople:
    """They create machines, request migrations, and cancel them. Without admission, which would refuse a second
    migration.
    """

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store, self._rng = store, rng
        self._made = self._cancelled = 0

    def make(self) -> bool:
        """Create missing machines; return whether there were any."""
        before = self._store.version
        self._store.actor = "user"
        for name in NAMES:
            vmi = self._store.find(VMI, Key("default", name))
            if (
                vmi is not None
                and vmi.get("status", {}).get("phase") in OVER
                and "deletionTimestamp" not in vmi["metadata"]
            ):
                self._store.delete(VMI, Key("default", name))
            if self._store.find(VMI, Key("default", name)) is None:
                cpu = {"cores": 1, "sockets": 1, "threads": 1, "maxSockets": MOST_SOCKETS}
                body = {"metadata": {"name": name}, "spec": {"domain": {"memory": {"guest": "64Mi"}, "cpu": cpu}}}
                self._store.create(VMI, "default", body)
        return before != self._store.version

    def move(self) -> str | None:
        name = self._rng.choice(NAMES)
        if self._store.find(VMI, Key("default", name)) is None:
            return None
        if self._rng.random() < 0.8 and any(_is_of(body, name) for _unused, body in self._store.list(MIGRATION)):
            return None
        self._store.actor = "user"
        self._made += 1
        body = {"metadata": {"name": f"move-{self._made}"}, "spec": {"vmiName": name}}
        self._store.create(MIGRATION, "default", body)
        return f"user: move {name} (move-{self._made})"

    def give_cpus(self) -> str | None:
        """Give a machine one more virtual CPU, wherever it is: its next launcher has room for that many."""
        key = Key("default", self._rng.choice(NAMES))
        vmi = self._store.find(VMI, key)
        sockets = 1 if vmi is None else vmi["spec"]["domain"]["cpu"]["sockets"] + 1
        if vmi is None or sockets > MOST_SOCKETS or "deletionTimestamp" in vmi["metadata"]:
            return None
        self._store.actor = "user"
        self._store.patch(VMI, key, {"spec": {"domain": {"cpu": {"sockets": sockets}}}})
        return f"user: {key} is to have {sockets} virtual CPUs"

    def cancel(self) -> str | None:
        there = [
            (key, body) for key, body in self._store.list(MIGRATION) if "deletionTimestamp" not in body["metadata"]
        ]
        unfinished = [key for key, body in there if body.get("status", {}).get("phase") not in OVER]
        if not unfinished:
            return None
        key = self._rng.choice(unfinished)
        self._store.actor = "user"
        self._cancelled += 1
        self._store.delete(MIGRATION, key)
        if self._cancelled % WIPED or self._store.find(MIGRATION, key) is None:
            return f"user: cancel {key.name}"
        self._store.patch(MIGRATION, key, {"metadata": {"finalizers": None}})
        return f"user: cancel {key.name}, and take its finalizer off"

    def delete_vmi(self) -> str | None:
        key = Key("default", self._rng.choice(NAMES))
        if self._store.find(VMI, key) is None:
            return None
        self._store.actor = "user"
        self._store.delete(VMI, key)
        return f"user: delete {key}"


class MigrationWorld(World):
    def __init__(self, rng: random.Random) -> None:
        settings, endless = rng.choice(((SETTINGS, 0.15), (STOPPING, 0.5)))
        configuration = Configuration(migrations=settings)
        super().__init__(rng, nodes=3, resources=WITH_MIGRATIONS, configuration=configuration, kind=MigratingLauncher)
        self.fabric = Fabric({node.name: node for node in self.nodes}, rng, endless)
        self.ended: set[str] = set()
        self.oracles = MigrationOracles(self.store, self.nodes, self.fabric.streams, self.ended)
        self.people = MigrationPeople(self.store, rng)
        self._collected = -1
        """The version of the store when nothing was left to collect."""
        self.begin()

    def new_controller(self, name: str, clock: WrongClock) -> Controller:
        controller = Controller(name, self.store, clock, self.rng, self.configuration, unconditional_write)
        controller.is_looked_at_each_time = False
        return controller

    def new_handler(self, node: Node) -> Handler:
        return MigratingHandler(node, self.store, self.rng, self.fabric)

    def check_invariants(self, view: View) -> None:
        self.oracles.check()

    def lose_left(self, launcher: MigratingLauncher) -> None:
        """Record that a launcher ends whose guest has left.

        Until that is recorded the guest may be lost: but not by a process that knows of the migration.
        """
        moving = moving_of(self.store.find(VMI, launcher.vmi) or {})
        if moving.get("completed") and not moving.get("failed"):
            return
        self.ended.add(launcher.vmi_uid)
        for handler in self.handlers.values():
            session = None if handler.is_dead else handler.sessions.session(launcher.pod_uid)
            transfer = None if session is None else session.launcher().status.transfer
            if transfer is not None and transfer.is_over and transfer.has_moved:
                self.oracles.known_to_have_left[launcher.pod_uid] = handler

    def carry(
        self,
        process: Process,
        index: int,
        fate: Fate,
        meanwhile: Callable[[], None] = lambda: None,
        *,
        is_late: bool = False,
    ) -> str:
        call = process.passes[index].call
        if call.is_api and is_unreachable(process):
            fate = "request lost"
        self.oracles.before(call)
        text = super().carry(process, index, "done" if call.verb == SHUT else fate, meanwhile, is_late=is_late)
        self.note(text)
        return text

    def host(self) -> None:
        """Let one node act by itself."""
        due: list[Callable[[], object]] = []
        for node in self.nodes:
            due += [partial(node.kubelet_step, *step) for step in node.kubelet_steps()]
            due += [partial(node.host_step, launcher) for launcher in node.host_steps()]
        due += [launcher.drop_incoming for launcher in self._lost_guests()]
        if due:
            self.rng.choice(due)()

    def drop_lost_guests(self) -> bool:
        """Let libvirt notice all lost incoming migrations; return whether there were any."""
        lost = self._lost_guests()
        for launcher in lost:
            launcher.drop_incoming()
        return bool(lost)

    def _lost_guests(self) -> list[MigratingLauncher]:
        running = (launcher for node in self.nodes if not node.is_off for launcher in node.launchers.values())
        mine = (launcher for launcher in running if isinstance(launcher, MigratingLauncher))
        return [launcher for launcher in mine if notices(launcher, self.fabric.streams)]

    def collect(self) -> bool:
        """Let one object be garbage-collected or evicted; return whether there was one."""
        if self.store.version == self._collected:
            return False
        if collect_garbage(self.store) or evict(self.store, OUT_OF_SERVICE) or collect_pods(self.store):
            return True
        self._collected = self.store.version
        return False

    def place(self) -> bool:
        """Schedule a pending Pod on a node without another Pod of its machine."""
        for key, body in self.store.list(POD):
            if "nodeName" in body["spec"]:
                continue
            nodes = [item for item, node in self.store.list(NODE) if self._takes(item.name, node, body)]
            if nodes:
                self.store.actor = "scheduler"
                self.store.set_pod(key, body["metadata"]["uid"], node=self.rng.choice(nodes).name)
                return True
        return False

    def _takes(self, name: str, node: Json, pod: Json) -> bool:
        if not is_listed(node) or any(has_taint(node, item["key"]) for item in node["spec"].get("taints") or ()):
            return False
        owner = controlling_uid(pod)
        others = (item for _unused, item in self.store.list(POD) if controlling_uid(item) == owner)
        return all(item["spec"].get("nodeName") != name for item in others)


def _is_of(migration: Json, name: str) -> bool:
    return bool(migration["spec"]["vmiName"] == name and migration.get("status", {}).get("phase") not in OVER)
