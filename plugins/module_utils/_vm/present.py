# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what one VM needs to be as declared. Pure; a decision is a Write or None.

Options alone say what they name and nothing else (merge patch). A definition is the whole: what was applied earlier
and is missing now is taken away (server-side apply, in whole.py). A run strategy that nobody declares is never touched.
What rests on a list that was read carries its resourceVersion, so that nobody's item is lost who was faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..kubevirt_api import run_strategies
from ..kubevirt_api.asked import run_strategy
from . import compare, manifest, overlay
from .request import VmRequest

STRATEGY_FIELDS = ("running", "runStrategy")

Object = dict[str, Any]


class Write(NamedTuple):
    """A request: how is create, apply, patch or replace."""

    how: str
    body: Object
    then: Write | None = None
    """What follows, with the resourceVersion that the first one made: an apply that changes nothing but the record of
    whose the fields are."""


def for_existing(request: VmRequest, live: Object) -> Write | None:
    """Return the write that makes the VM be as declared, None if it is."""
    is_replaced = request.force and request.has_machine
    if is_replaced or request.is_whole:
        from . import whole

        declared = _with_strategy(request, request.declared.vm, live)
        if is_replaced:
            return whole.for_replacement(declared, live, is_whole=request.is_whole)
        return whole.for_definition(declared, live)
    declared = _with_strategy(request, manifest.without_defaults(request.declared, live, request.kind), live)
    patch = compare.merge_patch(live, overlay.over_live(live, declared))
    return Write("patch", guarded(patch, live) if compare.has_lists(patch) else patch) if patch else None


def guarded(patch: Object, live: Object) -> Object:
    """Return a body that the server refuses when the VM is another version by then."""
    metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return {**patch, "metadata": metadata}


def _with_strategy(request: VmRequest, declared: Object, live: Object) -> Object:
    """Return the declaration with the strategy spelt as on the server, or with the other spelling taken away.

    Power states set the strategy aside: starting and stopping are requests of their own.
    """
    path = request.kind.vm
    machine = None if path is None else manifest.at(declared, path)
    spec = (machine or {}).get("spec") or {}
    if path is None or all(spec.get(key) is None for key in STRATEGY_FIELDS):
        return declared
    of_live = manifest.at(live, path) or {}
    wanted, here = run_strategy(machine or {}), run_strategy(of_live)
    there = of_live.get("spec") or {}
    spec = {key: value for key, value in spec.items() if key not in STRATEGY_FIELDS}
    if wanted == here:
        spec.update({key: there[key] for key in STRATEGY_FIELDS if there.get(key) is not None})
    elif not is_set_aside(request.state, wanted, start_paused=request.start_paused):
        spec.update({"runStrategy": wanted, "running": None})
    return manifest.replaced(declared, (*path, "spec"), spec)


def is_set_aside(state: str, wanted: str, *, start_paused: bool = False) -> bool:
    """Tell whether a strategy would at once undo the power state that is asked for."""
    if start_paused and wanted == run_strategies.ALWAYS:
        return True  # it would start the guest by itself, and not paused; the start that follows makes it Always
    if state == "stopped":
        return wanted not in (run_strategies.MANUAL, run_strategies.HALTED)
    return state in ("started", "restarted") and wanted == run_strategies.HALTED
