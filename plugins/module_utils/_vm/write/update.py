# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide the write that makes one object match its options. Pure; a decision is a Write or None.

Options change what they name and nothing else (a merge patch). A definition is complete: replace.py decides for it.
A run strategy that is not declared never changes. A patch that contains a list has the resourceVersion of the object
that it was computed from, so that the server refuses it if another client has added an item meanwhile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kubevirt_api import run_strategies
from ...kubevirt_api.desired import run_strategy
from ..field_path import value_at, with_value
from ..merge import compare
from ..request import manifest
from ..request.vm_request import VmRequest

STRATEGY_FIELDS = ("running", "runStrategy")

Object = dict[str, Any]


class Write(NamedTuple):
    """A request to the API server. method: create, apply, patch or replace."""

    method: str
    body: Object
    then: Write | None = None
    """A second request, sent with the resourceVersion that the first one returned: an apply that only records which
    fields are ours."""


def for_options(request: VmRequest, live: Object) -> Write | None:
    """Return the write that makes an object match its options, None if it matches."""
    declared = with_strategy(request, manifest.without_defaults(request.declaration, live, request.kind), live)
    patch = compare.merge_patch(live, manifest.over_live(request.declaration, declared, live, request.kind))
    return Write("patch", guarded(patch, live) if compare.has_lists(patch) else patch) if patch else None


def guarded(patch: Object, live: Object) -> Object:
    """Return a body that the server refuses if the object has changed since it was read."""
    metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return {**patch, "metadata": metadata}


def with_strategy(request: VmRequest, declared: Object, live: Object) -> Object:
    """Return the declaration with the run strategy in the field that the live object uses (running or runStrategy).

    A strategy that contradicts the power state of the task is left out: starts and stops are requests of their own.
    """
    path = request.kind.vm
    machine = None if path is None else value_at(declared, path)
    spec = (machine or {}).get("spec") or {}
    if path is None or all(spec.get(key) is None for key in STRATEGY_FIELDS):
        return declared
    live_machine = value_at(live, path) or {}
    strategy, current = run_strategy(machine or {}), run_strategy(live_machine)
    live_spec = live_machine.get("spec") or {}
    spec = {key: value for key, value in spec.items() if key not in STRATEGY_FIELDS}
    if strategy == current:
        spec.update({key: live_spec[key] for key in STRATEGY_FIELDS if live_spec.get(key) is not None})
    elif not is_overridden(request.state, strategy, start_paused=request.start_paused):
        spec.update({"runStrategy": strategy, "running": None})
    return with_value(declared, (*path, "spec"), spec)


def is_overridden(state: str, strategy: str, *, start_paused: bool = False) -> bool:
    """Tell whether a run strategy would undo the power state that the task asks for."""
    if start_paused and strategy == run_strategies.ALWAYS:
        return True  # the control plane would start the guest unpaused; the paused start sets Always itself
    if state == "stopped":
        return strategy not in (run_strategies.MANUAL, run_strategies.HALTED)
    return state in ("started", "restarted") and strategy == run_strategies.HALTED
