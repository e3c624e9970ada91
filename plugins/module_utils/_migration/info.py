# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read migrations for kubevirt_migration_info; optionally wait until they are over or have a condition."""

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


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool = False, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_migration_info. Check mode does not wait: nothing was started that could end."""
    terms = terms_from(params, check_mode=True, diff=False)
    for option in ("name", "vm"):
        if params.get(option):
            paths.check_name(option, params[option])
    if params.get("namespace"):
        paths.check_namespace("namespace", params["namespace"])
    try:
        migrations = [migration for migration in _read(params, api, terms) if _is_wanted(params, migration)]
        if terms.wait and not check_mode:
            migrations = _waited(params, api, terms, migrations)
    except NotFound:
        if terms.wait and not check_mode:
            raise
        return {"changed": False, "api_found": False, "resources": []}
    hidden = [list(path) for path in terms.hidden]
    resources = [redact.redacted(field_path.without(migration, hidden)) for migration in migrations]
    return {"changed": False, "api_found": True, "resources": resources}


def _read(params: Mapping[str, Any], api: Api, terms: Terms) -> list[Object]:
    resource = MIGRATION.resource(params.get("namespace"), terms.api_version)
    name, selectors = params.get("name"), params.get("label_selectors") or params.get("field_selectors")
    if name and resource.namespace and not selectors:
        migration = api.get(resource, name)
        return [] if migration is None else [migration]
    fields = [*(params.get("field_selectors") or ()), *([f"metadata.name={name}"] if name else ())]
    labels = ",".join(params.get("label_selectors") or ())
    return api.list(resource, labels=labels or None, fields=",".join(fields) or None)


def _is_wanted(params: Mapping[str, Any], migration: Object) -> bool:
    if params.get("vm") and (migration.get("spec") or {}).get("vmiName") != params["vm"]:
        return False
    return not (params.get("unfinished") and migration_status.is_over(migration))


def _waited(params: Mapping[str, Any], api: Api, terms: Terms, migrations: list[Object]) -> list[Object]:
    """Wait for the migrations; return those that were not deleted meanwhile."""
    awaited: dict[str, list[str]] = {}
    if params.get("name") and params.get("namespace") and not migrations:
        awaited[params["namespace"]] = [params["name"]]
    for migration in migrations:
        awaited.setdefault(migration["metadata"]["namespace"], []).append(migration["metadata"]["name"])
    existing = {
        (migration["metadata"]["namespace"], migration["metadata"]["name"]): migration for migration in migrations
    }
    deadline = time.monotonic() + terms.wait_timeout_seconds
    done = []
    for namespace, listed in awaited.items():

        def judge(name: str, obj: Object | None, namespace: str = namespace) -> Verdict:
            return _judge(obj, terms, existed=(namespace, name) in existing)

        resource = MIGRATION.resource(namespace, terms.api_version)
        for name, result in Waiter(api, resource, judge, deadline=deadline).until(listed).items():
            if not result.verdict.done:
                raise _timeout(resource.title(name), terms, result)
            if result.obj is not None:
                done.append(result.obj)
    return done


def _judge(obj: Object | None, terms: Terms, *, existed: bool) -> Verdict:
    if obj is None:
        return Verdict(done=existed, missing="it does not exist")
    if terms.condition is None:
        return Verdict(done=migration_status.is_over(obj), missing=f"it is {migration_status.phase_text(obj)}")
    if goal.has_condition(obj, terms.condition):
        return Verdict(done=True)
    kind, status, _reason = terms.condition
    reason = f"it is over ({migration_status.phase(obj)}) without its condition {kind} being {status}"
    return Verdict(
        hopeless=reason if migration_status.is_over(obj) else None, missing=f"its condition {kind} is not {status}"
    )


def _timeout(title: str, terms: Terms, reached: Reached) -> TimedOut:
    reason = reached.verdict.hopeless or reached.trouble or reached.verdict.missing
    facts = {
        "reason": reason,
        "phase": migration_status.phase(reached.obj),
        "phases": migration_status.phases(reached.obj),
    }
    if reached.verdict.hopeless:
        return TimedOut(f"{title} will not be as wanted: {reason}", **facts)
    if terms.condition is not None and reached.obj is not None:
        kind, status, _reason = terms.condition
        return TimedOut(f"{title}: its condition {kind} is not {status} after {terms.wait_timeout_seconds} s", **facts)
    return TimedOut(f"{title} is not over after {terms.wait_timeout_seconds} s: {reason}", **facts)
