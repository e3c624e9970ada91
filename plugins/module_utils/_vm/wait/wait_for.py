# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for the VMs, sets or instances of one namespace, and explain a timeout. goal.py says when a wait is over.

A wait needs no right that the objects themselves do not need. A deleted VM or instance exists until its Pods are gone,
because of the control plane's finalizers. Nothing holds a deleted set: its members are waited for if they can be read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..._client.api import Api, Resource
from ..._client.errors import Forbidden, TimedOut, VirtError
from ..._client.waiter import Reached, Stuck, Verdict, Waiter
from .. import kinds, unread_instance
from . import diagnose
from .fail_fast import Search
from .goal import Goal, judge
from .last_lines import LastLines

_STARTS = ("running", "instance")
"""Goals of machines that are to start."""

Object = dict[str, Any]


def wait_for(
    api: Api,
    resource: Resource,
    goals: dict[str, Goal],
    objects: dict[str, Object] | None = None,
    *,
    timeout_seconds: float,
    start: float | None = None,
    with_claims: bool = False,
    fail_fast: bool = False,
    shows_console: bool = False,
    warn: Callable[[str], None] = lambda _text: None,
) -> dict[str, Object | VirtError | None]:
    """Return for every name the object at its goal (None: gone), or an error with the reason why it is not there.

    resource: VMs, sets or instances of one namespace. objects: as they were before; identifies the instance of a VM
    that is gone by now. start: by time.monotonic, None for now. with_claims: a VM is gone when its claims are gone.
    fail_fast: end the wait for a machine that is stuck (stuck.py). shows_console: the facts of an error have the last
    lines of the guest. warn: takes what could not be waited for.
    """
    deadline = (time.monotonic() if start is None else start) + timeout_seconds
    with api.bounded(deadline):  # also bounds the requests that explain a timeout
        search = Search(api, resource.namespace or "") if fail_fast else None
        last_lines = LastLines(api) if shows_console else None
        known = dict(objects or {})
        run = _Wait(api, resource, goals, known, timeout_seconds, deadline, with_claims, search, last_lines, warn)
        return run.wait()


@dataclass
class _Wait:
    """One call of `wait_for`."""

    api: Api
    resource: Resource
    goals: dict[str, Goal]
    objects: dict[str, Object]
    """The newest version of each object."""
    timeout_seconds: float
    deadline: float
    with_claims: bool
    search: Search | None
    """Finds machines that are stuck; None: they are waited for."""
    last_lines: LastLines | None
    """Reads the last lines of guests; None: errors do not show them."""
    warn: Callable[[str], None]
    listed: dict[str, Object | None] = field(default_factory=dict)
    """Instances that one list request read for a round of verdicts. Each is used once."""
    stuck_members: dict[str, Stuck | None] = field(default_factory=dict)
    """What a member of a set is stuck in, by the name of the set, as of the last list."""

    @property
    def _namespace(self) -> str:
        return self.resource.namespace or ""

    @property
    def _instances(self) -> Resource:
        return kinds.instances(self.resource.namespace)

    @property
    def _has_instances(self) -> bool:
        """Tell whether the objects are VMs, which have an instance of their name."""
        return self.resource.kind == kinds.VM.name

    @property
    def _set(self) -> kinds.Kind | None:
        """Return the kind, None unless it has members."""
        return kinds.SETS.get(self.resource.kind)

    def wait(self) -> dict[str, Object | VirtError | None]:
        deleted = [name for name, goal in self.goals.items() if goal.kind == "gone"]
        claims = {name: self._claims(name) for name in deleted} if self.with_claims else {}
        done = {name: result for name, result in claims.items() if isinstance(result, VirtError)}
        others = [name for name in self.goals if name not in done]
        waiter = Waiter(self.api, self.resource, self._judge, deadline=self.deadline, prepare=self._prepare)
        reached = waiter.until(others)
        done.update({name: self._result(name, result) for name, result in reached.items()})
        done.update({name: self._after_change(name, done[name]) for name in others if self.goals[name].change})
        for name in [name for name in deleted if done[name] is None]:
            if self._set is not None:
                done[name] = self._wait_for_members(name, self._set)
            if name in claims and done[name] is None:
                done[name] = self._wait_for_claims(name, claims[name])
        return done

    def _claims(self, name: str) -> list[Object] | VirtError:
        """Return the claims that are deleted with a VM, or why they cannot be read. Read while the VM still exists."""
        from . import claims

        vm = self.objects.get(name)
        try:
            return claims.deleted_with(self.api, vm, self._namespace) if vm else []
        except VirtError as error:
            return error

    def _wait_for_claims(self, name: str, objects: list[Object]) -> VirtError | None:
        from . import claims

        resource = claims.resource(self._namespace)
        for claim in objects:
            try:
                error = self._wait_until_gone(name, f"claim {claim['metadata']['name']}", resource, [claim])
            except VirtError as refused:  # reported for this VM alone: other claims may be readable
                return refused
            if error is not None:
                return error
        return None

    def _after_change(self, name: str, result: Object | VirtError | None) -> Object | VirtError | None:
        """Wait until the machines of a pool have a change, then until all are ready again."""
        change = self.goals[name].change
        if change is None or not isinstance(result, dict):
            return result
        from . import rollout

        try:
            pending = rollout.wait_for_change(
                self.api, self.resource, result, change, self.deadline, search=self.search
            )
        except Forbidden as error:
            self.warn(f"{self.resource.title(name)} is changed, and its machines were not waited for: {error.message}")
            return result
        if pending is not None and pending[1].verdict.hopeless:
            return self._result(name, pending[1])
        if pending is not None:
            noun, reached = pending
            title = f"{noun} {reached.obj['metadata']['name']}" if reached.obj else noun
            reason = f"{title}: {reached.trouble or reached.verdict.missing}"
            text = f"{self.resource.title(name)} is not ready after {self.timeout_seconds:g} s: {reason}"
            return TimedOut(text, **{**self._explanation(name), "reason": reason})
        reached_again = Waiter(self.api, self.resource, self._judge, deadline=self.deadline).until([name])
        return self._result(name, reached_again[name])

    def _wait_for_members(self, name: str, kind: kinds.Kind) -> VirtError | None:
        """Wait for the members of a set. A machine outlives its instance, and the instance its Pods."""
        obj = self.objects.get(name)
        if obj is None:
            return None
        try:
            return self._wait_for_members_of(name, obj, kind)
        except Forbidden as error:
            self.warn(
                f"{self.resource.title(name)} is gone, and its {kind.members} were not waited for: {error.message}"
            )
            return None

    def _wait_for_members_of(self, name: str, obj: Object, kind: kinds.Kind) -> VirtError | None:
        from ..members import members

        listed = members(self.api, obj, self._namespace, kind)
        if kind is not kinds.POOL:
            return self._wait_until_gone(name, "instance", self._instances, listed)
        uids = {member["metadata"].get("uid") for member in listed}
        instances = [vmi for vmi in self.api.list(self._instances) if _owner_uids(vmi) & uids]
        error = self._wait_until_gone(name, "machine", kinds.VM.resource(self._namespace), listed)
        return error or self._wait_until_gone(name, "instance", self._instances, instances)

    def _wait_until_gone(self, name: str, noun: str, resource: Resource, objects: list[Object]) -> VirtError | None:
        """Wait until none of these objects exists. Return an error about the first remaining one."""
        goals = {obj["metadata"]["name"]: Goal("gone", uid=obj["metadata"].get("uid")) for obj in objects}
        if not goals:
            return None
        waiter = Waiter(self.api, resource, lambda key, obj: judge(goals[key], obj, None), deadline=self.deadline)
        remaining = [result for result in waiter.until(goals).values() if not result.verdict.done]
        return self._still_exists(name, noun, remaining[0]) if remaining else None

    def _judge(self, name: str, obj: Object | None) -> Verdict:
        goal = self.goals[name]
        if obj is not None:
            self.objects[name] = obj
        instance = obj
        if obj is not None and self._has_instances and goal.kind != "gone":
            instance = self._instance(name, obj)
        return self._with_stuck(name, judge(goal, obj, instance), obj, instance)

    def _instance(self, name: str, vm: Object) -> Object | None:
        if name in self.listed:  # each is used once: later events need a fresh read
            return self.listed.pop(name)
        return unread_instance.read(self.api, vm, self._namespace, name)

    def _with_stuck(self, name: str, verdict: Verdict, obj: Object | None, instance: Object | None) -> Verdict:
        """Return the verdict, with the state in which the machine or a member of the set is stuck."""
        if self.search is None or obj is None or verdict.done or verdict.hopeless:
            return verdict
        if self._set is not None:
            return replace(verdict, stuck=self.stuck_members.get(name))
        if self.goals[name].kind not in _STARTS or instance is None:
            return verdict
        old = self.goals[name].not_instance
        if old is not None and instance["metadata"].get("uid") == old:
            return verdict
        # An instance that could not be read has neither UID nor spec.
        return replace(verdict, stuck=self.search.of_machine(instance if instance["metadata"].get("uid") else obj))

    def _prepare(self, names_judged: list[str]) -> None:
        """Read with few requests what the verdicts on these objects need."""
        self._list_instances(names_judged)
        search, kind = self.search, self._set
        if search is None:
            return
        search.start_over()
        if kind is not None:
            starting = [name for name in names_judged if self.goals[name].kind != "gone" and name in self.objects]
            self.stuck_members = {name: search.of_member(self.objects[name], kind) for name in starting}

    def _list_instances(self, names_judged: list[str]) -> None:
        """Read the instances of many VMs with one request, if the user may list them."""
        self.listed = {}
        needed = [name for name in names_judged if self.goals[name].kind != "gone"] if self._has_instances else []
        if len(needed) < kinds.LIST_THRESHOLD:
            return
        try:
            instances = {vmi["metadata"]["name"]: vmi for vmi in self.api.list(self._instances)}
        except Forbidden:
            return  # each is then read on its own
        self.listed = {name: instances.get(name) for name in needed}

    def _result(self, name: str, reached: Reached) -> Object | VirtError | None:
        verdict = reached.verdict
        if verdict.done:
            return reached.obj
        goal = _goal_text(self.goals[name])
        if verdict.stuck is not None and verdict.hopeless == verdict.stuck.text:
            facts = {**self._explanation(name), "reason": verdict.hopeless}
            return VirtError(f"{self.resource.title(name)} will not be {goal}: {verdict.hopeless}", **facts)
        if verdict.hopeless:
            return self._failure(name, f"will not be {goal}: {verdict.hopeless}", VirtError)
        if verdict.wanted and not reached.trouble:
            state = "exists" if self.goals[name].kind == "exists" else f"is {goal}"
            text = f"{self.resource.title(name)} {state}, but {verdict.wanted} after {self.timeout_seconds:g} s"
            return TimedOut(f"{text}: {verdict.missing}", **{**self._explanation(name), "reason": verdict.missing})
        return self._failure(name, f"is not {goal} after {self.timeout_seconds:g} s", TimedOut, reached)

    def _failure(self, name: str, text: str, kind: type[VirtError], reached: Reached | None = None) -> VirtError:
        if reached is not None and reached.trouble:
            return kind(f"{self.resource.title(name)} {text}, and its state could not be read: {reached.trouble}")
        facts = self._explanation(name)
        missing = reached.verdict.missing if reached is not None else ""
        reason = (missing if self.objects.get(name) is None else "") or facts["reason"]
        return kind(f"{self.resource.title(name)} {text}: {reason}", **facts)

    def _explanation(self, name: str) -> dict[str, Any]:
        obj, lines = self.objects.get(name), self.last_lines
        if self._set is not None:
            from . import set_status

            return set_status.explain(self.api, obj, self._namespace, self._set, last_lines=lines)
        return diagnose.explain(self.api, obj, self._namespace, name, self.resource.kind, last_lines=lines)

    def _still_exists(self, name: str, noun: str, reached: Reached) -> VirtError:
        title, seconds = self.resource.title(name), self.timeout_seconds
        trouble = f" ({reached.trouble})" if reached.trouble else ""
        return TimedOut(f"{title} is gone, but its {noun} still exists after {seconds:g} s{trouble}")


def _owner_uids(obj: Object) -> set[str]:
    return {owner.get("uid") for owner in obj["metadata"].get("ownerReferences") or ()}


def _goal_text(goal: Goal) -> str:
    if goal.kind in ("instance", "exists", *kinds.MEMBERS):
        return "ready"
    return "running again" if goal.not_instance else goal.kind
