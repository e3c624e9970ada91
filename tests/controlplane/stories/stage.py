# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small world without faults: one controller, one node. Everything that happens becomes a line of text.

Indented lines are actions of a controller with their reasons; arrows are changes of objects.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    Key,
)
from controlplane.virt_api.subresources.lifecycle import PatchSpec, decide_start
from controlplane.virt_api.subresources.options import StartOptions
from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.fair import fair_round
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import UNCOUNTED, WITH_SETS, Change, Json, Store

NAMES = {
    "VirtualMachine": "vm",
    "VirtualMachineInstance": "vmi",
    "VirtualMachineInstanceReplicaSet": "vmirs",
    "Pod": "pod",
    "Node": "node",
}
ROUNDS = 200
LONGEST_STEP_SECONDS = 20.0
"""Shorter than the interval between two renewals of a Lease: none may be missed."""


class Calm(random.Random):
    """A random source without mishaps."""

    def random(self) -> float:
        return 0.5


class Stage:
    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.store = Store(self.clock, WITH_SETS)
        self.node = Node("node-1", self.store, self.clock, Calm(0))
        self.controller = Controller("controller", self.store, WrongClock(self.clock), Calm(0))
        self.handler = Handler(self.node, self.store, Calm(0))
        self.lines: list[str] = []
        self.calls: Counter[str] = Counter()
        """Writes of the controller, e.g. "create Pod"."""
        self.has_room = True
        """Whether the scheduler finds a node for a Pod."""
        self._seen = len(self.store.history)
        self._epoch = self.clock.now()

    def act(self, text: str, doing: Callable[[], object]) -> None:
        """Let a user act, then run everything that follows at once."""
        self.lines.append(text)
        doing()
        self.rest()

    def rest(self) -> None:
        """Run until no process has work; the time does not advance."""
        with self._listening():
            for _unused in range(ROUNDS):
                processes = [self.controller, *(() if self.node.is_off else (self.handler,))]
                moved = fair_round(self.store, processes, [self.node], carry=self._carry, schedule=self._schedule)
                self._record_changes()
                if not moved:
                    return
        raise AssertionError("the stage does not come to rest:\n" + "\n".join(self.lines))

    def wait(self, seconds: float) -> None:
        self.lines.append(f"{seconds:g} s pass")
        remaining = seconds
        while remaining > LONGEST_STEP_SECONDS:
            self.clock.advance(LONGEST_STEP_SECONDS)
            remaining -= LONGEST_STEP_SECONDS
            self.rest()
        self.clock.advance(remaining)
        self.rest()

    def guest(self, how: str) -> None:
        """End the one running guest."""
        (guest,) = self.guests()
        self.act(f"the guest {'powers off' if how == 'shut down' else 'crashes'}", lambda: guest.end_guest(how))

    def lose_power(self) -> None:
        self.node.lose_power()
        self.handler.die(None, is_request_out=False)

    def restore_power(self) -> None:
        self.node.heal()
        self.handler = Handler(self.node, self.store, Calm(0))

    def guests(self) -> list[Launcher]:
        return self.node.guests()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_unused: object) -> None:
        """End both processes."""
        for process in (self.controller, self.handler):
            process.die(None, is_request_out=False)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def _carry(self, process: Process) -> None:
        call = process.passes[0].call
        if call.is_write and process is self.controller:
            self.calls[f"{call.verb} {call.kind}"] += 1
        process.carry_out(0, "done")
        self._record_changes()

    def _schedule(self) -> None:
        for key, body in self.store.list(POD):
            if self.has_room and "nodeName" not in body["spec"]:
                self.store.set_pod(key, body["metadata"]["uid"], node=self.node.name)

    def _record_changes(self) -> None:
        for change in self.store.history[self._seen :]:
            line = _describe(change)
            if line is not None:
                self.lines.append(line)
        self._seen = len(self.store.history)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Turn the log of the reconcilers into lines."""
        logger = logging.getLogger("controlplane.engine.reconcile")
        listener = _Listener(self.lines)
        level, propagate = logger.level, logger.propagate
        logger.addHandler(listener)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(listener)
            logger.setLevel(level)
            logger.propagate = propagate


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        facts: dict[str, Any] = record.__dict__
        if record.getMessage() == "act":
            self._lines.append(f"  {facts['action']:<17} because {facts['because']}")


def _describe(change: Change) -> str | None:
    if change.resource in UNCOUNTED:
        return None
    name = f"{NAMES[change.resource.kind]}/{change.key.name}"
    if change.after is None:
        return f"  -> {name} is gone"
    if change.before is None or change.before is change.after:
        return f"  -> {name} exists"
    before, after = _word(change.before), _word(change.after)
    if before != after:
        return f"  -> {name} is {after}"
    return None


def _word(body: Json) -> str:
    status = body.get("status", {})
    if "labelSelector" in status:
        return f"{status.get('replicas', 0)} of {body['spec']['replicas']}, {status.get('readyReplicas', 0)} ready"
    word = str(status.get("printableStatus") or status.get("phase") or "new")
    if body["metadata"].get("deletionTimestamp") and "printableStatus" not in status:
        word += ", going"
    return word


def a_vm(name: str = "web", strategy: str = "Always", **spec: Any) -> Json:
    template = {"spec": {"domain": {"memory": {"guest": "64Mi"}}, **spec}}
    return {"metadata": {"name": name}, "spec": {"runStrategy": strategy, "template": template}}


class Users:
    """Actions of users, each a line of the text."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._store = stage.store

    def create(self, vm: Json) -> None:
        name, strategy = vm["metadata"]["name"], vm["spec"]["runStrategy"]
        self._stage.act(
            f"a user creates vm/{name} with run strategy {strategy}",
            lambda: self._store.create(VIRTUAL_MACHINE, "default", vm),
        )

    def switch(self, strategy: str) -> None:
        patch = {"spec": {"runStrategy": strategy}}
        self._stage.act(f"a user switches vm/web to {strategy}", lambda: self._store.patch(VIRTUAL_MACHINE, WEB, patch))

    def start(self, *, is_paused: bool = False) -> None:
        """Have virt-api start vm/web."""

        def do() -> None:
            vm, vmi = decode_vm(self._store.get(VIRTUAL_MACHINE, WEB)), self._store.find(VIRTUAL_MACHINE_INSTANCE, WEB)
            own = None if vmi is None else decode_vmi(vmi)
            for write in decide_start(vm, own, StartOptions(paused=is_paused)):
                subresource = "" if isinstance(write, PatchSpec) else "status"
                self._store.patch(VIRTUAL_MACHINE, WEB, write.patch, subresource=subresource)

        self._stage.act(f"a user starts vm/web{', paused' if is_paused else ''}", do)

    def request(self, word: str, *actions: str) -> None:
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, WEB)
        uid = vmi["metadata"]["uid"] if vmi else None
        requests = [{"action": action, "uid": uid} if action == "Stop" else {"action": action} for action in actions]
        patch = {"status": {"stateChangeRequests": requests}}
        self._stage.act(
            f"a user asks for a {word} of vm/web",
            lambda: self._store.patch(VIRTUAL_MACHINE, WEB, patch, subresource="status"),
        )

    def create_set(self, replicas: int) -> None:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": "web"}, "spec": spec}
        self._stage.act(
            f"a user creates vmirs/web with {replicas} replicas",
            lambda: self._store.create(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, "default", body),
        )

    def scale(self, replicas: int) -> None:
        patch = {"spec": {"replicas": replicas}}
        self._stage.act(
            f"a user scales vmirs/web to {replicas}",
            lambda: self._store.patch(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, WEB, patch),
        )

    def delete_set(self) -> None:
        self._stage.act(
            "a user deletes vmirs/web", lambda: self._store.delete(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, WEB)
        )

    def delete_vmi(self) -> None:
        self._stage.act("a user deletes vmi/web", lambda: self._store.delete(VIRTUAL_MACHINE_INSTANCE, WEB))

    def delete_vm(self, *, orphan: bool = False) -> None:
        text = "a user deletes vm/web" + (" with --cascade=orphan" if orphan else "")
        propagation = "Orphan" if orphan else None
        self._stage.act(text, lambda: self._store.delete(VIRTUAL_MACHINE, WEB, propagation=propagation))


WEB = Key("default", "web")
