# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until VMs are what they should be, by watch: no polling. One watch per namespace serves all VMs of a task.

A watch begins with the present state of every object; after it stands, the VMs are read once, so that nothing that
happened before it is missed (an object that is gone makes no first event).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .._client.api import Api
from .._client.errors import TimedOut, Unavailable, VirtError
from . import cluster, diagnose
from .goal import Goal, judge

Object = dict[str, Any]
Clock = Callable[[], float]
PAUSE_SECONDS = 1.0
"""Before a watch that broke at once is opened again."""


class Waiter:
    """Waits for the VMs (or, without their VMs, instances) of one namespace."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        *,
        timeout_seconds: float,
        kind: str = "virtualmachines",
        clock: Clock = time.monotonic,
    ) -> None:
        self._api = api
        self._namespace = namespace
        of_instances = kind != "virtualmachines"
        self._resource = cluster.instances(namespace) if of_instances else cluster.virtual_machines(namespace)
        self._timeout = timeout_seconds
        self._deadline = clock() + timeout_seconds
        self._clock = clock
        self._pending: dict[str, Goal] = {}
        self._done: dict[str, Object | VirtError | None] = {}
        self._seen: dict[str, Object | None] = {}
        self._missing: dict[str, str] = {}

    def until(
        self, goals: dict[str, Goal], known: dict[str, Object] | None = None
    ) -> dict[str, Object | VirtError | None]:
        """Return for every name the VM as it is by then (None: gone), or the error that says why it is not so.

        known: how the VMs were before; tells whose the instance of a VM is that is gone already.
        """
        self._pending = dict(goals)
        self._seen.update(known or {})
        while self._pending and self._left() > 0:
            self._watch_once()
        for name in list(self._pending):
            self._fail(name, f"is not {_wanted(goals[name])} after {self._timeout:g} s", TimedOut)
        self._await_instances([name for name, goal in goals.items() if goal.kind == "gone"])
        return self._done

    def _left(self) -> float:
        return self._deadline - self._clock()

    def _watch_once(self) -> None:
        """Follow one watch to its end, or until nothing is pending."""
        began = self._clock()
        fields = f"metadata.name={next(iter(self._pending))}" if len(self._pending) == 1 else None
        watcher = self._api.clone()
        try:
            events = watcher.watch(self._resource, fields=fields, timeout_seconds=self._left())
            for name in list(self._pending):
                self._consider(name, self._api.get(self._resource, name))
            if not self._pending:
                return
            for event in events:
                name = event["object"]["metadata"]["name"]
                if name in self._pending:
                    self._consider(name, None if event["type"] == "DELETED" else event["object"])
                if not self._pending or self._left() <= 0:
                    return
        except Unavailable:
            if self._left() <= PAUSE_SECONDS:
                raise
        finally:
            watcher.close()
        if self._clock() - began < PAUSE_SECONDS and self._left() > PAUSE_SECONDS:
            time.sleep(PAUSE_SECONDS)  # a back-off, not a poll: the server or the network cut the watch

    def _consider(self, name: str, vm: Object | None) -> None:
        goal = self._pending[name]
        self._seen[name] = vm if vm is not None else self._seen.get(name)
        instance = None
        if vm is not None and goal.kind in ("running", "stopped"):
            instance = self._api.get(cluster.instances(self._namespace), name)
        verdict = judge(goal, vm, instance)
        self._missing[name] = verdict.missing
        if verdict.done:
            self._done[name] = vm
            del self._pending[name]
        elif verdict.hopeless:
            self._fail(name, f"will not be {_wanted(goal)}: {verdict.hopeless}", VirtError)

    def _fail(self, name: str, text: str, kind: type[VirtError]) -> None:
        seen = self._seen.get(name)
        facts = diagnose.explain(self._api, seen, self._namespace, name)
        why = self._missing.get(name) or facts["reason"] if seen is None else facts["reason"]
        self._done[name] = kind(f"{self._resource.title(name)} {text}: {why}", **facts)
        self._pending.pop(name, None)

    def _await_instances(self, names: list[str]) -> None:
        """Deleted VMs: wait for the instances that they owned as well."""
        for name in names:
            if not isinstance(self._done.get(name), VirtError):
                try:
                    self._await_instance(name, self._seen.get(name))
                except VirtError as error:
                    self._done[name] = error

    def _await_instance(self, name: str, vm: Object | None) -> None:
        resource = cluster.instances(self._namespace)
        while _is_owned(self._api.get(resource, name), vm):
            if self._left() <= 0:
                raise TimedOut(
                    f"VirtualMachine {self._namespace}/{name} is gone, but its instance is still there after"
                    f" {self._timeout:g} s"
                )
            watcher = self._api.clone()
            try:
                events = watcher.watch(resource, fields=f"metadata.name={name}", timeout_seconds=self._left())
                if not _is_owned(self._api.get(resource, name), vm):
                    return
                if any(event["type"] == "DELETED" for event in events):
                    return
            finally:
                watcher.close()


def _is_owned(vmi: Object | None, vm: Object | None) -> bool:
    if vmi is None or vm is None:
        return False
    owners = vmi["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == vm["metadata"].get("uid") for owner in owners)


def _wanted(goal: Goal) -> str:
    if goal.kind == "instance":
        return "ready"
    return "running anew" if goal.not_instance else goal.kind
