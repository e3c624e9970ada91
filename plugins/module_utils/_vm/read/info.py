# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read objects for the info modules; optionally wait until they are ready."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..._client import paths, redact
from ..._client.api import Api, Resource
from ..._client.errors import BadArgument, NotFound, VirtError
from .. import field_path, kinds
from ..kinds import Kind
from ..request.vm_request import Terms, terms_from
from ..wait.goal import Goal

Object = dict[str, Any]


def virtual_machines(
    params: Mapping[str, Any], api: Api, *, check_mode: bool = False, **_modes: bool
) -> dict[str, Any]:
    """Return the result of kubevirt_vm_info."""
    goal = "stopped" if params.get("running") is False else "running"
    return _result(params, *_objects(params, api, kinds.VM, goal, check_mode=check_mode))


def instances(params: Mapping[str, Any], api: Api, *, check_mode: bool = False, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_vmi_info."""
    objects, warnings = _objects(params, api, kinds.VMI, "instance", check_mode=check_mode)
    result = _result(params, objects, warnings)
    if params.get("guest"):
        from . import guest_agent

        result["guests"] = guest_agent.reports(api, objects or [])
    return result


def replica_sets(params: Mapping[str, Any], api: Api, *, check_mode: bool = False, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_replicaset_info."""
    goal = kinds.REPLICA_SET.members
    return _result(params, *_objects(params, api, kinds.REPLICA_SET, goal, check_mode=check_mode))


def pools(params: Mapping[str, Any], api: Api, *, check_mode: bool = False, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_pool_info."""
    return _result(params, *_objects(params, api, kinds.POOL, kinds.POOL.members, check_mode=check_mode))


def _objects(
    params: Mapping[str, Any], api: Api, kind: Kind, goal: str, *, check_mode: bool
) -> tuple[list[Object] | None, list[str]]:
    """Return the objects, None if the cluster does not know the kind, and warnings. A wait then fails at once.

    Check mode does not wait: an earlier task may have been about to create or start what the task waits for.
    """
    terms = terms_from(params, check_mode=True, diff=False, kind=kind)
    _check(params)
    resource = kind.resource(params.get("namespace"), terms.api_version)
    waits = terms.wait and not check_mode
    objects: list[Object] | None = None
    try:
        objects = _read(params, api, resource)
        if waits:
            objects = _wait(api, resource, _names(params, objects), _goal(params, goal, terms), terms)
    except NotFound:
        if waits:
            raise
    is_missed = terms.wait and check_mode and not objects
    return objects, [_not_waited(params, resource)] if is_missed else []


def _not_waited(params: Mapping[str, Any], resource: Resource) -> str:
    missing = (
        f"{resource.title(params['name'])} does not exist" if params.get("name") else f"no {resource.kind} is found"
    )
    return f"check mode does not wait: {missing}, unless an earlier task creates it"


def _goal(params: Mapping[str, Any], default: str, terms: Terms) -> Goal:
    """Return what to wait for: the default, or a condition instead; both if the task also sets running."""
    is_both = terms.condition is None or params.get("running") is not None
    return Goal(default if is_both else "exists", may_come=True, condition=terms.condition)


def _result(params: Mapping[str, Any], objects: list[Object] | None, warnings: list[str]) -> dict[str, Any]:
    hidden = [list(path) for path in terms_from(params, check_mode=True, diff=False).hidden]
    resources = [redact.redacted(field_path.without(obj, hidden)) for obj in objects or ()]
    result = {"changed": False, "api_found": objects is not None, "resources": resources}
    return {**result, "warnings": warnings} if warnings else result


def _check(params: Mapping[str, Any]) -> None:
    if params.get("namespace"):
        paths.check_namespace("namespace", params["namespace"])
    if params.get("name"):
        paths.check_name("name", params["name"])
    if params.get("running") is not None and not params.get("wait"):
        raise BadArgument("running says what to wait for; set wait=true, or leave it out")


def _read(params: Mapping[str, Any], api: Api, resource: Resource) -> list[Object]:
    name, selectors = params.get("name"), params.get("label_selectors") or params.get("field_selectors")
    if name and resource.namespace and not selectors:
        obj = api.get(resource, name)
        return [] if obj is None else [obj]
    fields = [*(params.get("field_selectors") or ()), *([f"metadata.name={name}"] if name else ())]
    labels = params.get("label_selectors") or ()
    return api.list(resource, labels=",".join(labels) or None, fields=",".join(fields) or None)


def _names(params: Mapping[str, Any], objects: list[Object]) -> dict[str, list[str]]:
    """Return the names to wait for, by namespace. The task's name is one of them even before its object exists."""
    by_namespace: dict[str, list[str]] = {}
    if params.get("name") and params.get("namespace"):
        by_namespace[params["namespace"]] = [params["name"]]
    else:
        for obj in objects:
            by_namespace.setdefault(obj["metadata"]["namespace"], []).append(obj["metadata"]["name"])
    return by_namespace


def _wait(api: Api, resource: Resource, names: dict[str, list[str]], goal: Goal, terms: Terms) -> list[Object]:
    from ..wait.wait_for import wait_for

    ready: list[Object] = []
    start = time.monotonic()
    for namespace, own_names in names.items():
        collection = Resource(resource.api_version, resource.plural, resource.kind, namespace)
        goals = dict.fromkeys(own_names, goal)
        seconds, fail_fast = terms.wait_timeout_seconds, terms.fail_fast
        results = wait_for(api, collection, goals, timeout_seconds=seconds, start=start, fail_fast=fail_fast)
        for result in results.values():
            if isinstance(result, VirtError):
                raise result
            if result is not None:
                ready.append(result)
    return ready
