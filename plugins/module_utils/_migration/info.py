# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read migrations for kubevirt_migration_info; wait, if asked, until they are over or have a condition."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import paths, redact
from .._client.api import Api
from .._client.errors import NotFound, TimedOut
from .._client.waiter import Reached, Verdict, Waiter
from .._vm import field_path
from .._vm.request.vm_request import Terms, terms_from
from .._vm.wait import goal
from . import migration_status
from .request import MIGRATION

Object = dict[str, Any]


def run(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_migration_info."""
    terms = terms_from(params, check_mode=True, diff=False)
    for option in ("name", "vm"):
        if params.get(option):
            paths.check_name(option, params[option])
    if params.get("namespace"):
        paths.check_namespace("namespace", params["namespace"])
    try:
        found = [one for one in _read(params, api, terms) if _is_wanted(params, one)]
        if terms.wait:
            found = _waited(params, api, terms, found)
    except NotFound:
        if terms.wait:
            raise
        return {"changed": False, "api_found": False, "resources": []}
    hidden = [list(path) for path in terms.hidden]
    shown = [redact.redacted(field_path.without(one, hidden)) for one in found]
    return {"changed": False, "api_found": True, "resources": shown}


def _read(params: Mapping[str, Any], api: Api, terms: Terms) -> list[Object]:
    resource = MIGRATION.resource(params.get("namespace"), terms.api_version)
    name, selectors = params.get("name"), params.get("label_selectors") or params.get("field_selectors")
    if name and resource.namespace and not selectors:
        found = api.get(resource, name)
        return [] if found is None else [found]
    fields = [*(params.get("field_selectors") or ()), *([f"metadata.name={name}"] if name else ())]
    labels = ",".join(params.get("label_selectors") or ())
    return api.list(resource, labels=labels or None, fields=",".join(fields) or None)


def _is_wanted(params: Mapping[str, Any], migration: Object) -> bool:
    if params.get("vm") and (migration.get("spec") or {}).get("vmiName") != params["vm"]:
        return False
    return not (params.get("unfinished") and migration_status.is_over(migration))


def _waited(params: Mapping[str, Any], api: Api, terms: Terms, found: list[Object]) -> list[Object]:
    """Return the same as they are when each is as it should be, or gone if it was there."""
    wanted: dict[str, list[str]] = {}
    if params.get("name") and params.get("namespace") and not found:
        wanted[params["namespace"]] = [params["name"]]
    for one in found:
        wanted.setdefault(one["metadata"]["namespace"], []).append(one["metadata"]["name"])
    known = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in found}
    deadline = time.monotonic() + terms.wait_timeout_seconds
    done = []
    for namespace, listed in wanted.items():

        def judge(name: str, obj: Object | None, namespace: str = namespace) -> Verdict:
            return _judge(obj, terms, is_known=(namespace, name) in known)

        resource = MIGRATION.resource(namespace, terms.api_version)
        for name, one in Waiter(api, resource, judge, deadline=deadline).until(listed).items():
            if not one.verdict.done:
                raise _in_vain(resource.title(name), terms, one)
            if one.obj is not None:
                done.append(one.obj)
    return done


def _judge(obj: Object | None, terms: Terms, *, is_known: bool) -> Verdict:
    if obj is None:
        return Verdict(done=is_known, missing="it is not there")
    if terms.condition is None:
        return Verdict(done=migration_status.is_over(obj), missing=f"it is {migration_status.told(obj)}")
    if goal.has_condition(obj, terms.condition):
        return Verdict(done=True)
    kind, status, _reason = terms.condition
    over = f"it is over ({migration_status.phase(obj)}) without its condition {kind} being {status}"
    return Verdict(
        hopeless=over if migration_status.is_over(obj) else None, missing=f"its condition {kind} is not {status}"
    )


def _in_vain(title: str, terms: Terms, reached: Reached) -> TimedOut:
    why = reached.verdict.hopeless or reached.trouble or reached.verdict.missing
    facts = {
        "reason": why,
        "phase": migration_status.phase(reached.obj),
        "phases": migration_status.phases(reached.obj),
    }
    if reached.verdict.hopeless:
        return TimedOut(f"{title} will not be as wanted: {why}", **facts)
    return TimedOut(f"{title} is not over after {terms.wait_timeout_seconds} s: {why}", **facts)
