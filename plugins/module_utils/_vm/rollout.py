# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a pool's machines are as its template says after a change of it, which its status does not tell.

Before the change it is noted what each machine was made from (Machines); a machine has the change when that is another,
or when there is nothing in the change that it has not. Machines that a selection leaves alone are not waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._client.api import Api, Resource
from .._client.waiter import Reached, Verdict, Waiter
from ..kubevirt_api import names
from ..kubevirt_api.asked import is_deleting, run_strategy
from ..kubevirt_api.predicates import is_ready
from ..kubevirt_api.run_strategies import ALWAYS
from . import cluster, compare, manifest, overlay, pool, replica_set

_NUMBERED: tuple[tuple[str, ...], ...] = (("dataVolumeTemplates",), ("template", "spec", "volumes"))
"""What each machine has under names of its own, in the spec of a machine."""
_OF_RUNS = ("template", "dataVolumeTemplates")
"""What a running machine has from its next start on only."""

Object = dict[str, Any]
Machines = dict[str, str]
"""What the machines of a pool were made from, by UID."""


@dataclass(frozen=True)
class Change:
    """A change of a pool's template, and how its machines were before."""

    old: Machines
    patch: Object
    """What changes in the spec of a machine, as a merge patch."""
    is_for_runs: bool
    """Those that run are restarted."""


def noted(api: Api, live: Object, namespace: str) -> Machines:
    """Return what the machines of a pool were made from."""
    return {one["metadata"]["uid"]: _revision(one) for one in replica_set.members(api, live, namespace, cluster.POOL)}


def change_of(old: Machines, before: Object | None, after: Object) -> Change | None:
    """Return what is to be waited for when a pool was changed; None if its machines need no change. Pure."""
    here, there = _template(before or {}), _template(after)
    strategy = manifest.at(after, ("spec", "updateStrategy")) or {}
    selectors = manifest.at(strategy, (pool.PROACTIVE, "selectionPolicy", "selectors"))
    if before is None or here == there or pool.UNMANAGED in strategy or selectors:
        return None
    specs = (here.get("spec") or {}, there.get("spec") or {})
    is_for_runs = "opportunistic" not in strategy and any(specs[0].get(key) != specs[1].get(key) for key in _OF_RUNS)
    return Change(old, compare.merge_patch(*specs), is_for_runs)


def followed(api: Api, resource: Resource, obj: Object, change: Change, deadline: float) -> tuple[str, Reached] | None:
    """Wait until the machines of a pool have a change; return the first that has not, with a word for what it is."""
    namespace = resource.namespace or ""
    wanted = {one["metadata"]["name"]: one for one in replica_set.members(api, obj, namespace, cluster.POOL)}
    waiter = Waiter(
        api, cluster.VM.resource(namespace), lambda name, vm: judge(change, wanted[name], vm), deadline=deadline
    )
    reached = waiter.until(wanted)
    late = next((one for one in reached.values() if not one.verdict.done), None)
    if late is not None or not change.is_for_runs:
        return None if late is None else ("machine", late)
    starting = {name: one.obj for name, one in reached.items() if one.obj and run_strategy(one.obj) == ALWAYS}
    waiter = Waiter(
        api, cluster.instances(namespace), lambda name, vmi: judge_run(starting[name], vmi), deadline=deadline
    )
    late = next((one for one in waiter.until(starting).values() if not one.verdict.done), None)
    return None if late is None else ("instance", late)


def judge(change: Change, before: Object, vm: Object | None) -> Verdict:
    """Tell whether a machine has the change. One that is gone, or another of its name, came since. Pure."""
    uid = before["metadata"]["uid"]
    if vm is None or vm["metadata"]["uid"] != uid or uid not in change.old or _revision(vm) != change.old[uid]:
        return Verdict(done=True)
    spec = vm.get("spec") or {}
    patch = _as_far_as_there(change.patch, spec)
    laid = overlay.over_live({"spec": spec}, {"spec": patch})["spec"]
    left = compare.merge_patch(_without_numbered(spec), _without_numbered(laid))
    return Verdict(done=not left and not _has_numbered(patch), missing="it is as it was before the change")


def _as_far_as_there(patch: Object, live: Object) -> Object:
    """Return a merge patch without what it takes away from where there is nothing."""
    kept: Object = {}
    for key, value in patch.items():
        here = live.get(key)
        if isinstance(value, dict) and value:
            if inner := _as_far_as_there(value, here if isinstance(here, dict) else {}):
                kept[key] = inner
        elif value is not None or here is not None:
            kept[key] = value
    return kept


def judge_run(vm: Object, vmi: Object | None) -> Verdict:
    """Tell whether what a machine runs as was made from it as it is, and is ready. Pure."""
    if vmi is None or is_deleting(vmi):
        return Verdict(missing="it is being started anew")
    made_of = (vmi["metadata"].get("labels") or {}).get(names.POOL_REVISION)
    if made_of != _revision(vm):
        return Verdict(missing="it runs as it was before the change")
    return Verdict(done=is_ready(vmi), missing="it is not ready")


def _revision(vm: Object) -> str:
    return str((vm["metadata"].get("labels") or {}).get(names.POOL_REVISION) or "")


def _template(obj: Object) -> Object:
    found: Object = manifest.at(obj, cluster.POOL.vm or ()) or {}
    return found


def _has_numbered(patch: Object) -> bool:
    return any(path[-1] in (manifest.at(patch, path[:-1]) or {}) for path in _NUMBERED)


def _without_numbered(spec: Object) -> Object:
    for path in _NUMBERED:
        if manifest.at(spec, path) is not None:
            spec = manifest.replaced(spec, path, None)
    return spec
