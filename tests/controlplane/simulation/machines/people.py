# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of users: declare, switch, request, delete, adopt, conflict. Their writes never fail by chance.

Actions on Pods are in hands_on_pods. Requests use the real decisions of virt-api. Users do not lie: a Node declared out
of service is off.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kubevirt_api import names
from kubevirt_api.names import LAUNCHER_ROLE, NODE_NAME, ROLE, VM_FINALIZER
from kubevirt_api.run_strategies import ALWAYS, BUILT, HALTED

from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.phase import SCHEDULED
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_api.subresources.lifecycle import (
    NotImplementedStrategyError,
    PatchInstance,
    PatchSpec,
    PatchStatus,
    RefusedError,
    Write,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.subresources.options import RestartOptions, StartOptions, StopOptions
from tests.controlplane.simulation.ledger import UNKNOWN, Ledger, strategy_of
from tests.controlplane.simulation.machines.hands_on_pods import NOTHING, HandsOnPods
from tests.controlplane.simulation.machines.truth import TIER
from tests.controlplane.simulation.node import BAD_NODE_SELECTOR, DEAF, NO_KERNEL
from tests.support.store import OVER, Json, Store

USERS_NAMESPACE = "default"
IMPATIENT = 0.5
"""The share of machines with their own number of attempts."""
TRIED_AGAIN = ("0", "2")
WAITED_FOR = ("", "0", "20", "20", "90")
"""Time limits for a launcher's start, in seconds; "": the default, "0": none."""
INVALID_MEMORY = "-64Mi"
"""A VMI with this memory bypassed admission."""
UNNAMED = 0.2
"""How often a stop request names no instance, as from older clients."""
Doing = Callable[[Key], str]


class People:
    def __init__(self, store: Store, rng: random.Random, names: tuple[str, ...], ledger: Ledger) -> None:
        self._store = store
        self._rng = rng
        self._names = names
        self._ledger = ledger
        self.pods = HandsOnPods(store, rng)
        self._doings: tuple[Doing, ...] = (
            self.switch,
            self.start,
            self.stop,
            self.restart,
            self.delete_vmi,
            self.pods.delete,
            self.pods.force_delete,
            self.delete_vm,
            self.pods.relabel,
            self.squat,
            self._change_template,
            self._annotate,
            self._start_again_and_again,
            self._want_something_new,
        )
        self._weights = [1.0] * len(self._doings)

    def draw_odds(self) -> None:
        """Choose the probabilities of a stretch."""
        usual = (2, 5, 3, 3, 2, 2, 2, 1.2, 5, 2, 2, 1, 2, 1)
        self._weights = [item * self._rng.choice((0.1, 1.0, 1.0, 4.0)) for item in usual]

    def act(self) -> str:
        """Do one random action; return it. Machines that are starting are chosen most."""
        self._store.actor = "user"
        if self._rng.random() < 0.3:
            done = self.take_back(Key(USERS_NAMESPACE, self._rng.choice(self._names)))
            if done != NOTHING:
                return done
        key = Key(USERS_NAMESPACE, self._rng.choice(self._names))
        if self._store.find(VIRTUAL_MACHINE, key) is None:
            return self._create_vmi(key) if self._rng.random() < 0.15 else self._create_vm(key)
        return self._rng.choices(self._doings, weights=self._weights)[0](key)

    def ask(self) -> str:
        """Send a request to a machine, or withdraw one."""
        self._store.actor = "user"
        there = [key for key, _unused in self._store.list(VIRTUAL_MACHINE)]
        if not there:
            return NOTHING
        key = self._rng.choice(there)
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, key)
        is_over = vmi is not None and vmi.get("status", {}).get("phase") in OVER
        doings = (self.start, self.stop, self.restart, self.restart, self.switch, self._change_template)
        return self._rng.choice((self.start, *doings[:3]) if is_over else doings)(key)

    def _create_vm(self, key: Key) -> str:
        selector = {}
        if self._rng.random() < 0.25:
            selector = {self._rng.choice((BAD_NODE_SELECTOR, NO_KERNEL, DEAF)): "true"}
        strategy = self._rng.choice((*BUILT, ALWAYS, ALWAYS))
        spec: Json = {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}, "nodeSelector": selector}}}
        if self._rng.random() < 0.2:
            spec["running"] = self._rng.random() < 0.5
            spec["template"]["metadata"] = {"labels": {NODE_NAME: "copied"}}  # copied from an instance that ran
        else:
            spec["runStrategy"] = strategy
        if self._rng.random() < IMPATIENT:
            named = {names.FURTHER_ATTEMPTS: self._rng.choice(TRIED_AGAIN)}
            named |= {names.RUN_TIMEOUT: seconds} if (seconds := self._rng.choice(WAITED_FOR)) else {}
            spec["template"].setdefault("metadata", {})["annotations"] = named
        meta: Json = {"name": key.name}
        if self._rng.random() < 0.8:
            meta["finalizers"] = [VM_FINALIZER]
        self._store.create(VIRTUAL_MACHINE, key.namespace, {"metadata": meta, "spec": spec})
        return f"create VM {key} {spec.get('runStrategy', spec.get('running'))}"

    def _create_vmi(self, key: Key) -> str:
        if self._store.find(VIRTUAL_MACHINE_INSTANCE, key) is not None:
            return NOTHING
        spec: Json = {"domain": {"memory": {"guest": "64Mi"}}}
        if self._rng.random() < 0.3:
            spec["domain"]["memory"]["guest"] = INVALID_MEMORY
        meta = {"name": key.name, "labels": {NODE_NAME: "copied"}}  # copied from one that ran
        self._store.create(VIRTUAL_MACHINE_INSTANCE, key.namespace, {"metadata": meta, "spec": spec})
        return f"create VMI {key}"

    def squat(self, key: Key) -> str:
        """Create a VMI that only refers to the VM, or a foreign Pod with the name of a launcher."""
        if self._store.find(VIRTUAL_MACHINE, key) is None:
            return NOTHING
        vm, vmi = self._find(key)
        if vmi is None:
            owner = _reference(VIRTUAL_MACHINE.kind, vm)
            meta = {"name": key.name, "ownerReferences": [owner]}
            spec = {"domain": {"memory": {"guest": "64Mi"}}}
            self._store.create(VIRTUAL_MACHINE_INSTANCE, key.namespace, {"metadata": meta, "spec": spec})
            return f"create VMI {key} that mentions the VM"
        return self._squat_pod(key, vmi)

    def _squat_pod(self, key: Key, vmi: Json) -> str:
        status = vmi.get("status", {})
        attempt = max(status.get("attempt", status.get("epoch", 0)) + self._rng.choice((0, 1)), 1)
        tail = f"{vmi['metadata']['uid'].replace('-', '')[:8]}-{attempt}"
        pod = Key(key.namespace, f"virt-launcher-{key.name}-{tail}".replace(".", "-"))
        if self._store.find(POD, pod) is not None:
            return NOTHING
        meta: Json = {"name": pod.name, "annotations": {"squatter": "true"}}
        if self._rng.random() < 0.7:
            meta["labels"] = {ROLE: LAUNCHER_ROLE}
        if self._rng.random() < 0.5:
            meta["ownerReferences"] = [_reference(VIRTUAL_MACHINE_INSTANCE.kind, vmi)]
        self._store.create(POD, key.namespace, {"metadata": meta, "spec": {"containers": [{"name": "compute"}]}})
        return f"create Pod {pod} that squats"

    def switch(self, key: Key) -> str:
        strategy = self._rng.choice((*BUILT, ALWAYS, HALTED))
        if self._store.find(VIRTUAL_MACHINE, key) is None:
            return NOTHING
        self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"runStrategy": strategy, "running": None}})
        return f"switch VM {key} to {strategy}"

    def _want_something_new(self, key: Key) -> str:
        """Set a field that only a newer version knows."""
        self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"runStrategy": UNKNOWN, "running": None}})
        return f"switch VM {key} to {UNKNOWN}"

    def want_what_is_known(self) -> None:
        """Remove such fields."""
        self._store.actor = "user"
        for key, vm in self._store.list(VIRTUAL_MACHINE):
            if strategy_of(vm) == UNKNOWN:
                self.switch(key)

    def _change_template(self, key: Key) -> str:
        memory = self._rng.choice(("64Mi", "96Mi", "128Mi"))
        again = self._rng.choice((*TRIED_AGAIN, None))
        tier = self._rng.choice(("a", "b", None))
        template = {
            "metadata": {"annotations": {names.FURTHER_ATTEMPTS: again}, "labels": {TIER: tier}},
            "spec": {"domain": {"memory": {"guest": memory}}},
        }
        self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"template": template}})
        return f"change VM {key} to {memory}, tier {tier}, tried again {again or 'as usual'}"

    def _annotate(self, key: Key) -> str:
        resource = self._rng.choice((VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE))
        if self._store.find(resource, key) is None:
            return NOTHING
        note = {"metadata": {"annotations": {"note": str(self._store.version)}}}
        self._store.patch(resource, key, note)
        return f"annotate {resource.kind} {key}"

    def start(self, key: Key) -> str:
        options = StartOptions(paused=self._rng.random() < 0.15)
        return self._ask(key, "start", lambda vm, vmi: decide_start(vm, vmi, options))

    def stop(self, key: Key) -> str:
        options = StopOptions(grace_period=self._rng.choice((None, None, 0, 5)))
        return self._ask(key, "stop", lambda vm, vmi: decide_stop(vm, vmi, options))

    def restart(self, key: Key) -> str:
        options = RestartOptions(grace_period=self._rng.choice((None, 0)))
        return self._ask(key, "restart", lambda vm, vmi: decide_restart(vm, vmi, options))

    def _start_again_and_again(self, key: Key) -> str:
        """Start, stop and start again at once."""
        done = [self._rng.choice((self.start, self.stop, self.restart))(key) for _unused in range(2)]
        kept = [item for item in done if item != NOTHING]
        return " and ".join(kept) if kept else NOTHING

    def _ask(self, key: Key, word: str, decide: Callable[[Any, Any], tuple[Write, ...]]) -> str:
        """Handle a request as virt-api does."""
        if self._store.find(VIRTUAL_MACHINE, key) is None:
            return NOTHING
        raw_vm, raw_vmi = self._find(key)
        vm, vmi = decode_vm(raw_vm), decode_vmi(raw_vmi) if raw_vmi is not None else None
        try:
            writes = decide(vm, vmi)
        except (RefusedError, NotImplementedStrategyError):
            return NOTHING
        self._ledger.accepted(word, vm, vmi, self._store.version)
        if self._rng.random() < UNNAMED:
            writes = tuple(map(_without_name, writes))
        for write in writes:
            if isinstance(write, PatchInstance):
                self._store.patch(VIRTUAL_MACHINE_INSTANCE, key, write.patch, uid=write.uid)
            else:
                subresource = "" if isinstance(write, PatchSpec) else "status"
                self._store.patch(VIRTUAL_MACHINE, key, write.patch, subresource=subresource)
        return f"{word} VM {key}"

    def delete_vmi(self, key: Key) -> str:
        if self._store.find(VIRTUAL_MACHINE_INSTANCE, key) is None:
            return NOTHING
        self._store.delete(VIRTUAL_MACHINE_INSTANCE, key)
        return f"delete VMI {key}"

    def take_back(self, key: Key) -> str:
        """Delete an instance at the moment in which its start was granted."""
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, key)
        if vmi is None or vmi.get("status", {}).get("phase") != SCHEDULED or "deletionTimestamp" in vmi["metadata"]:
            return NOTHING
        return self.delete_vmi(key)

    def leave(self, key: Key) -> str:
        """Remove the owners of an instance."""
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, key)
        if vmi is None or not vmi["metadata"].get("ownerReferences"):
            return NOTHING
        self._store.patch(VIRTUAL_MACHINE_INSTANCE, key, {"metadata": {"ownerReferences": None}})
        return f"take the owners off VMI {key}"

    def delete_vm(self, key: Key) -> str:
        vm = self._store.find(VIRTUAL_MACHINE, key)
        if vm is None or "deletionTimestamp" in vm["metadata"]:
            return NOTHING
        orphan = self._rng.random() < 0.4
        self._store.delete(VIRTUAL_MACHINE, key, propagation="Orphan" if orphan else None)
        return f"delete VM {key}" + (" and leave its instance" if orphan else "")

    def _find(self, key: Key) -> tuple[Json, Json | None]:
        vm = self._store.find(VIRTUAL_MACHINE, key)
        assert vm is not None
        return vm, self._store.find(VIRTUAL_MACHINE_INSTANCE, key)


def _without_name(write: Write) -> Write:
    """Remove the instance's name from a lone stop request."""
    match write:
        case PatchStatus(patch={"status": {"stateChangeRequests": [{"action": "Stop"}]}}):
            return PatchStatus({"status": {**write.patch["status"], "stateChangeRequests": [{"action": "Stop"}]}})
    return write


def _reference(kind: str, body: Json) -> Json:
    """Return an owner reference that does not control."""
    meta = body["metadata"]
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}
