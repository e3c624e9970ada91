# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for the VMs (or, without their VMs, instances) of one namespace, and say why in vain. How to wait is in
_client/waiter.py, what is enough in goal.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import Forbidden, TimedOut, VirtError
from .._client.waiter import Reached, Verdict, Waiter
from ..kubevirt_api import names
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
    with_claims: bool = False,
) -> dict[str, Object | VirtError | None]:
    """Return for every name the object as it is by then (None: gone), or the error that says why it is not so.

    resource: VirtualMachines or their instances, of one namespace. known: how they were before; tells whose the
    instance of a VM is that is gone already. began: since when the time counts, by time.monotonic; None: now.
    with_claims: what is to be gone is so when the claims that go with it are.
    """
    deadline = (time.monotonic() if began is None else began) + timeout_seconds
    with api.bounded(deadline):  # to find out why not, too
        return _Wait(api, resource, goals, dict(known or {}), timeout_seconds, deadline, with_claims).until_all()


@dataclass
class _Wait:
    """One call of `wait_for`."""

    api: Api
    resource: Resource
    goals: dict[str, Goal]
    seen: dict[str, Object]
    timeout_seconds: float
    deadline: float
    with_claims: bool
    listed: dict[str, Object | None] = field(default_factory=dict)
    """Instances that were read together for one look at all VMs; each is used once."""

    @property
    def _instances(self) -> Resource:
        return cluster.instances(self.resource.namespace)

    @property
    def _has_instances(self) -> bool:
        """Tell whether these are VMs, which have an instance each, of their name."""
        return self.resource.kind == cluster.VM.name

    @property
    def _set(self) -> cluster.Kind | None:
        """Return the kind of what keeps several alike, None where these are no such."""
        return cluster.SETS.get(self.resource.kind)

    def until_all(self) -> dict[str, Object | VirtError | None]:
        leaving = [name for name, goal in self.goals.items() if goal.kind == "gone"]
        uids = {name: uid for name in leaving if (uid := self._instance_uid(name))}
        claims = {name: self._claims(name) for name in leaving} if self.with_claims else {}
        done = {name: found for name, found in claims.items() if isinstance(found, VirtError)}
        others = [name for name in self.goals if name not in done]
        waiter = Waiter(self.api, self.resource, self._judge, deadline=self.deadline, prepare=self._list_instances)
        reached = waiter.until(others)
        done.update({name: self._result(name, one) for name, one in reached.items()})
        done.update({name: self._followed(name, done[name]) for name in others if self.goals[name].change})
        gone = [name for name in leaving if done[name] is None]
        if gone and self._has_instances:  # the instances that they owned go with them
            waiter = Waiter(self.api, self._instances, self._judge_instance, deadline=self.deadline)
            ended = waiter.until(gone)
            done.update(
                {name: self._left_behind(name, "instance", one) for name, one in ended.items() if not one.verdict.done}
            )
            gone = [name for name, one in ended.items() if one.obj is None]  # an instance that stays keeps its Pod
        for name in gone:
            if name in uids:
                done[name] = self._pods_left(name, uids[name])
            elif self._set is not None:
                done[name] = self._members_left(name, self._set)
            if name in claims and done[name] is None:
                done[name] = self._claims_left(name, claims[name])
        return done

    def _claims(self, name: str) -> list[Object] | VirtError:
        """Return the claims that go with a VM, as long as that can be known; or why it cannot."""
        from . import claims

        vm = self.seen.get(name)
        try:
            return claims.going_with(self.api, vm, self.resource.namespace or "") if vm else []
        except VirtError as error:
            return error

    def _claims_left(self, name: str, found: list[Object]) -> VirtError | None:
        from . import claims

        resource = claims.resource(self.resource.namespace or "")
        for one in found:
            try:
                error = self._all_left(name, f"claim {one['metadata']['name']}", resource, [one])
            except VirtError as refused:  # others' claims may be read all the same
                return refused
            if error is not None:
                return error
        return None

    def _followed(self, name: str, found: Object | VirtError | None) -> Object | VirtError | None:
        """Wait until the machines of a pool have a change, and for as many to be ready once more."""
        change = self.goals[name].change
        if change is None or not isinstance(found, dict):
            return found
        from . import rollout

        late = rollout.followed(self.api, self.resource, found, change, self.deadline)
        if late is not None:
            what, one = late
            where = f"{what} {one.obj['metadata']['name']}" if one.obj else what
            facts = self._explained(name)
            why = f"{where}: {one.trouble or one.verdict.missing}"
            text = f"{self.resource.title(name)} is not ready after {self.timeout_seconds:g} s: {why}"
            return TimedOut(text, **{**facts, "reason": why})
        again = Waiter(self.api, self.resource, self._judge, deadline=self.deadline).until([name])
        return self._result(name, again[name])

    def _members_left(self, name: str, kind: cluster.Kind) -> VirtError | None:
        """Wait for what a set kept; each stays until its instance, and that until its Pods are gone."""
        seen = self.seen.get(name)
        if seen is None:
            return None
        from . import replica_set

        namespace = self.resource.namespace or ""
        found = replica_set.members(self.api, seen, namespace, kind)
        if kind is not cluster.POOL:
            return self._all_left(name, "instance", self._instances, found)
        uids = {one["metadata"].get("uid") for one in found}
        runs = [one for one in self.api.list(self._instances) if _owners(one) & uids]
        machines = self._all_left(name, "machine", cluster.VM.resource(namespace), found)
        return machines or self._all_left(name, "instance", self._instances, runs)

    def _instance_uid(self, name: str) -> str | None:
        """Return the UID by which the Pods of what is being deleted are known."""
        obj = self.seen.get(name)
        if self._set is not None:
            return None
        if self._has_instances:
            vm = obj
            try:
                obj = self.api.get(self._instances, name)
            except VirtError:
                return None  # as with Pods that cannot be read
            if not _is_owned(obj, vm):
                return None
        return obj["metadata"].get("uid") if obj else None

    def _pods_left(self, name: str, uid: str) -> VirtError | None:
        """Wait for the Pods of an instance. Where they cannot be read, the instance tells: it stays until they go."""
        resource = cluster.pods(self.resource.namespace or "")
        try:
            pods = self.api.list(resource, labels=f"{names.CREATED_BY}={uid}")
            return self._all_left(name, "launcher Pod", resource, pods)
        except VirtError:
            return None

    def _all_left(self, name: str, what: str, resource: Resource, objects: list[Object]) -> VirtError | None:
        """Wait until none of these is there; return what to say of the first that still is."""
        goals = {one["metadata"]["name"]: Goal("gone", uid=one["metadata"].get("uid")) for one in objects}
        if not goals:
            return None
        waiter = Waiter(self.api, resource, lambda one, obj: judge(goals[one], obj, None), deadline=self.deadline)
        left = [one for one in waiter.until(goals).values() if not one.verdict.done]
        return self._left_behind(name, what, left[0]) if left else None

    def _judge(self, name: str, obj: Object | None) -> Verdict:
        goal = self.goals[name]
        if obj is not None:
            self.seen[name] = obj
        instance = obj
        if obj is not None and self._has_instances and goal.kind != "gone":
            is_listed = name in self.listed
            instance = self.listed.pop(name) if is_listed else self.api.get(self._instances, name)
        return judge(goal, obj, instance)

    def _list_instances(self, names_judged: list[str]) -> None:
        """Read the instances of many VMs with one request, where the user may."""
        self.listed = {}
        needed = [name for name in names_judged if self.goals[name].kind != "gone"] if self._has_instances else []
        if len(needed) < cluster.LIST_FROM:
            return
        try:
            found = {one["metadata"]["name"]: one for one in self.api.list(self._instances)}
        except Forbidden:
            return  # each is read by itself then
        self.listed = {name: found.get(name) for name in needed}

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
        facts = self._explained(name)
        missing = reached.verdict.missing if reached is not None else ""
        why = missing or facts["reason"] if seen is None else facts["reason"]
        if reached is not None and self.goals[name].condition and "condition" in missing:
            why = missing
        return kind(f"{self.resource.title(name)} {text}: {why}", **facts)

    def _explained(self, name: str) -> dict[str, Any]:
        namespace = self.resource.namespace or ""
        if self._set is not None:
            from . import replica_set

            return replica_set.explain(self.api, self.seen.get(name), namespace, self._set)
        return diagnose.explain(self.api, self.seen.get(name), namespace, name, self.resource.kind)

    def _left_behind(self, name: str, what: str, reached: Reached) -> VirtError:
        title, seconds = self.resource.title(name), self.timeout_seconds
        why = f" ({reached.trouble})" if reached.trouble else ""
        return TimedOut(f"{title} is gone, but its {what} is still there after {seconds:g} s{why}")


def _is_owned(vmi: Object | None, vm: Object | None) -> bool:
    if vmi is None or vm is None:
        return False
    return vm["metadata"].get("uid") in _owners(vmi)


def _owners(obj: Object) -> set[str]:
    return {owner.get("uid") for owner in obj["metadata"].get("ownerReferences") or ()}


def _wanted(goal: Goal) -> str:
    if goal.kind in ("instance", "there", *cluster.MEMBERS):
        return "ready"
    return "running anew" if goal.not_instance else goal.kind
