# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for the VMs (or, without their VMs, instances) of one namespace, and say why in vain. How to wait is in
_client/waiter.py, what is enough in goal.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import TimedOut, VirtError
from .._client.waiter import Reached, Verdict, Waiter
from . import cluster, diagnose
from .goal import Goal, judge

Object = dict[str, Any]


def wait_for(
    api: Api,
    resource: Resource,
    goals: dict[str, Goal],
    known: dict[str, Object] | None = None,
    *,
    timeout_seconds: float,
    began: float | None = None,
) -> dict[str, Object | VirtError | None]:
    """Return for every name the object as it is by then (None: gone), or the error that says why it is not so.

    resource: VirtualMachines or their instances, of one namespace. known: how they were before; tells whose the
    instance of a VM is that is gone already. began: since when the time counts, by time.monotonic; None: now.
    """
    deadline = (time.monotonic() if began is None else began) + timeout_seconds
    return _Wait(api, resource, goals, dict(known or {}), timeout_seconds, deadline).until_all()


@dataclass
class _Wait:
    """One call of `wait_for`."""

    api: Api
    resource: Resource
    goals: dict[str, Goal]
    seen: dict[str, Object]
    timeout_seconds: float
    deadline: float

    @property
    def _instances(self) -> Resource:
        return cluster.instances(self.resource.namespace)

    def until_all(self) -> dict[str, Object | VirtError | None]:
        reached = Waiter(self.api, self.resource, self._judge, deadline=self.deadline).until(self.goals)
        done = {name: self._result(name, one) for name, one in reached.items()}
        gone = [name for name, one in done.items() if self.goals[name].kind == "gone" and one is None]
        if gone:  # the instances that they owned go with them
            waiter = Waiter(self.api, self._instances, self._judge_instance, deadline=self.deadline)
            left = {name: one for name, one in waiter.until(gone).items() if not one.verdict.done}
            done.update({name: self._instance_left(name, one) for name, one in left.items()})
        return done

    def _judge(self, name: str, obj: Object | None) -> Verdict:
        goal = self.goals[name]
        if obj is not None:
            self.seen[name] = obj
        instance = None
        if obj is not None and goal.kind in ("running", "stopped"):
            instance = self.api.get(self._instances, name)
        return judge(goal, obj, instance)

    def _judge_instance(self, name: str, obj: Object | None) -> Verdict:
        return Verdict(done=not _is_owned(obj, self.seen.get(name)))

    def _result(self, name: str, reached: Reached) -> Object | VirtError | None:
        verdict = reached.verdict
        if verdict.done:
            return reached.obj
        wanted = _wanted(self.goals[name])
        if verdict.hopeless:
            return self._failure(name, f"will not be {wanted}: {verdict.hopeless}", VirtError)
        return self._failure(name, f"is not {wanted} after {self.timeout_seconds:g} s", TimedOut, reached)

    def _failure(self, name: str, text: str, kind: type[VirtError], reached: Reached | None = None) -> VirtError:
        if reached is not None and reached.trouble:
            return kind(f"{self.resource.title(name)} {text}, as far as could be seen: {reached.trouble}")
        seen = self.seen.get(name)
        facts = diagnose.explain(self.api, seen, self.resource.namespace or "", name)
        missing = reached.verdict.missing if reached is not None else ""
        why = missing or facts["reason"] if seen is None else facts["reason"]
        return kind(f"{self.resource.title(name)} {text}: {why}", **facts)

    def _instance_left(self, name: str, reached: Reached) -> VirtError:
        title, seconds = self.resource.title(name), self.timeout_seconds
        why = f" ({reached.trouble})" if reached.trouble else ""
        return TimedOut(f"{title} is gone, but its instance is still there after {seconds:g} s{why}")


def _is_owned(vmi: Object | None, vm: Object | None) -> bool:
    if vmi is None or vm is None:
        return False
    owners = vmi["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == vm["metadata"].get("uid") for owner in owners)


def _wanted(goal: Goal) -> str:
    if goal.kind == "instance":
        return "ready"
    return "running anew" if goal.not_instance else goal.kind
