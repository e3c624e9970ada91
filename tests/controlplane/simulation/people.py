# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users do: declare, switch, delete, adopt, and get in the way. Their writes never fail for lack of luck."""

from __future__ import annotations

import random
from typing import Any

from kubevirt_api.names import VM_FINALIZER
from kubevirt_api.run_strategies import ALWAYS, BUILT, HALTED, MANUAL, RERUN_ON_FAILURE

from controlplane.api.objects.phase import is_final
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.node import BAD_NODE_SELECTOR
from tests.controlplane.simulation.store import Json, Store

NAMESPACE = "default"
INVALID_MEMORY = "-64Mi"
"""A VMI with so much memory got past admission."""


class People:
    def __init__(self, store: Store, rng: random.Random, names: tuple[str, ...]) -> None:
        self._store = store
        self._rng = rng
        self._names = names

    def act(self) -> str:
        """Do one thing at random; say what."""
        key = Key(NAMESPACE, self._rng.choice(self._names))
        vm = self._store.find(VIRTUAL_MACHINE, key)
        if vm is None:
            if self._rng.random() < 0.15:
                return self._create_vmi(key)
            return self._create_vm(key)
        doing = self._rng.choices(
            (self._switch, self._start, self._stop, self._delete_vmi, self._delete_pod, self._delete_vm),
            weights=(5, 3, 3, 3, 2, 3),
        )[0]
        return doing(key)

    def settle(self, strategy: str) -> None:
        """Make every VM want something definite, so that the end can be checked."""
        for key, vm in self._store.list(VIRTUAL_MACHINE):
            if "deletionTimestamp" not in vm["metadata"]:
                self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"runStrategy": strategy, "running": None}})

    def _create_vm(self, key: Key) -> str:
        selector = {BAD_NODE_SELECTOR: "true"} if self._rng.random() < 0.15 else {}
        strategy = self._rng.choice((*BUILT, ALWAYS, ALWAYS))
        finalizers = [VM_FINALIZER] if self._rng.random() < 0.8 else []
        spec: Json = {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}, "nodeSelector": selector}}}
        if self._rng.random() < 0.3:
            spec["running"] = self._rng.random() < 0.5
        else:
            spec["runStrategy"] = strategy
        meta: Json = {"name": key.name}
        if finalizers:
            meta["finalizers"] = finalizers
        self._store.create(VIRTUAL_MACHINE, key.namespace, {"metadata": meta, "spec": spec})
        return f"create VM {key} {spec.get('runStrategy', spec.get('running'))}"

    def _create_vmi(self, key: Key) -> str:
        if self._store.find(VIRTUAL_MACHINE_INSTANCE, key) is not None:
            return "nothing"
        spec: Json = {"domain": {"memory": {"guest": "64Mi"}}}
        if self._rng.random() < 0.3:
            spec["domain"]["memory"]["guest"] = INVALID_MEMORY
        self._store.create(VIRTUAL_MACHINE_INSTANCE, key.namespace, {"metadata": {"name": key.name}, "spec": spec})
        return f"create VMI {key}"

    def _switch(self, key: Key) -> str:
        strategy = self._rng.choice((*BUILT, ALWAYS, HALTED))
        self._store.patch(VIRTUAL_MACHINE, key, {"spec": {"runStrategy": strategy, "running": None}})
        return f"switch VM {key} to {strategy}"

    def _start(self, key: Key) -> str:
        return self._request(key, "start", [{"action": "Start"}])

    def _stop(self, key: Key) -> str:
        vmi = self._store.find(VIRTUAL_MACHINE_INSTANCE, key)
        if vmi is None:
            return "nothing"
        stop: list[Json] = [{"action": "Stop", "uid": vmi["metadata"]["uid"]}]
        if self._rng.random() < 0.5:
            return self._request(key, "restart", [*stop, {"action": "Start"}])
        if is_final(vmi.get("status", {}).get("phase", "")):
            return "nothing"
        return self._request(key, "stop", stop)

    def _request(self, key: Key, name: str, requests: list[Json]) -> str:
        """As virt-api does: only for strategies that take requests."""
        vm = self._store.find(VIRTUAL_MACHINE, key) or {}
        strategy = vm.get("spec", {}).get("runStrategy", "")
        allowed = (MANUAL, RERUN_ON_FAILURE, ALWAYS) if name == "restart" else (MANUAL, RERUN_ON_FAILURE)
        if strategy not in allowed or (name != "stop" and vm.get("status", {}).get("stateChangeRequests")):
            return "nothing"
        patch: dict[str, Any] = {"status": {"stateChangeRequests": requests, "startFailure": None}}
        self._store.patch(VIRTUAL_MACHINE, key, patch, subresource="status")
        return f"{name} VM {key}"

    def _delete_vmi(self, key: Key) -> str:
        if self._store.find(VIRTUAL_MACHINE_INSTANCE, key) is None:
            return "nothing"
        self._store.delete(VIRTUAL_MACHINE_INSTANCE, key)
        return f"delete VMI {key}"

    def _delete_pod(self, key: Key) -> str:
        pods = [one for one, _unused in self._store.list(POD)]
        if not pods:
            return "nothing"
        one = self._rng.choice(pods)
        self._store.delete(POD, one)
        return f"delete Pod {one}"

    def _delete_vm(self, key: Key) -> str:
        orphan = self._rng.random() < 0.3
        self._store.delete(VIRTUAL_MACHINE, key, propagation="Orphan" if orphan else None)
        return f"delete VM {key}" + (" and leave its instance" if orphan else "")
