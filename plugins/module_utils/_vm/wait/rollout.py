# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the machines of a pool have a change of its template (write/pool_change.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..._client.api import Api, Resource
from ..._client.waiter import Judge, Reached, Stuck, Verdict, Waiter
from ...kubevirt_api.desired import is_deleting, run_strategy
from ...kubevirt_api.predicates import is_ready
from ...kubevirt_api.run_strategies import ALWAYS
from .. import kinds
from ..field_path import value_at, with_value
from ..members import members
from ..merge import compare, overlay
from ..write.pool_change import Change, revision
from .fail_fast import Search

_PER_MACHINE: tuple[tuple[str, ...], ...] = (("dataVolumeTemplates",), ("template", "spec", "volumes"))
"""Fields of a machine's spec with names that are different for each machine."""

Object = dict[str, Any]


def wait_for_change(
    api: Api, resource: Resource, pool: Object, change: Change, deadline: float, *, search: Search | None = None
) -> tuple[str, Reached] | None:
    """Wait until all machines have the change; return the first that has not, after the word for it.

    search: finds a machine that is stuck, which ends the wait, because the others wait for it; None: wait all the same.
    """
    namespace = resource.namespace or ""
    machines = {vm["metadata"]["name"]: vm for vm in members(api, pool, namespace, kinds.POOL)}
    stuck: Stuck | None = None

    def look(_names: list[str]) -> None:
        nonlocal stuck
        if search is not None:
            search.start_over()
            stuck = search.of_member(pool, kinds.POOL)

    def wait(collection: Resource, judge_one: Judge, names: Iterable[str]) -> dict[str, Reached]:
        def judge_all(name: str, obj: Object | None) -> Verdict:
            return replace(judge_one(name, obj), stuck=stuck)

        return Waiter(api, collection, judge_all, deadline=deadline, prepare=look).until(names)

    reached = wait(kinds.VM.resource(namespace), lambda name, vm: judge(change, machines[name], vm), machines)
    late = next((result for result in reached.values() if not result.verdict.done), None)
    if late is not None or not change.restarts:
        return None if late is None else ("machine", late)
    running = {
        name: result.obj for name, result in reached.items() if result.obj and run_strategy(result.obj) == ALWAYS
    }
    ended = wait(kinds.instances(namespace), lambda name, vmi: judge_run(running[name], vmi), running)
    late = next((result for result in ended.values() if not result.verdict.done), None)
    return None if late is None else ("instance", late)


def judge(change: Change, before: Object, vm: Object | None) -> Verdict:
    """Tell whether a machine has the change. A new machine has it, even with the name of an old one. Pure."""
    uid = before["metadata"]["uid"]
    if vm is None or vm["metadata"]["uid"] != uid or uid not in change.revisions:
        return Verdict(done=True)
    if revision(vm) != change.revisions[uid]:
        return Verdict(done=True)
    spec = vm.get("spec") or {}
    patch = _without_needless_nulls(change.patch, spec)
    laid = overlay.over_live({"spec": spec}, {"spec": patch})["spec"]
    difference = compare.merge_patch(_comparable(spec), _comparable(laid))
    done = not difference and not _touches_names(patch)
    return Verdict(done=done, missing="it is as it was before the change")


def judge_run(vm: Object, vmi: Object | None) -> Verdict:
    """Tell whether the instance of a machine has the machine's revision and is ready. Pure."""
    if vmi is None or is_deleting(vmi):
        return Verdict(missing="it is being restarted")
    if not revision(vmi) or revision(vmi) != revision(vm):
        return Verdict(missing="it runs as it was before the change")
    return Verdict(done=is_ready(vmi), missing="it is not ready")


def _without_needless_nulls(patch: Object, live: Object) -> Object:
    """Return a merge patch without the removal of fields that do not exist."""
    needed: Object = {}
    for key, value in patch.items():
        current = live.get(key)
        if isinstance(value, dict) and value:
            if inner := _without_needless_nulls(value, current if isinstance(current, dict) else {}):
                needed[key] = inner
        elif value is not None or current is not None:
            needed[key] = value
    return needed


def _touches_names(patch: Object) -> bool:
    return any(path[-1] in (value_at(patch, path[:-1]) or {}) for path in _PER_MACHINE)


def _comparable(spec: Object) -> Object:
    for path in _PER_MACHINE:
        if value_at(spec, path) is not None:
            spec = with_value(spec, path, None)
    return spec
