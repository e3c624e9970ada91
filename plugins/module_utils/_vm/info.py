# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read VMs or instances for the info modules; wait, if asked, until they are ready."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import paths, redact
from .._client.api import Api, Resource
from .._client.errors import BadArgument, NotFound, VirtError
from . import cluster, field_path
from .cluster import Kind
from .goal import Goal
from .request import Terms, terms_from

Object = dict[str, Any]


def virtual_machines(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_vm_info."""
    goal = "stopped" if params.get("running") is False else "running"
    return _result(params, _found(params, api, cluster.VM, goal))


def instances(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_vmi_info."""
    found = _found(params, api, cluster.VMI, "instance")
    result = _result(params, found)
    if params.get("guest"):
        from . import guests  # most tasks ask for none

        result["guests"] = guests.told(api, found or [])
    return result


def replica_sets(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_replicaset_info."""
    return _result(params, _found(params, api, cluster.REPLICA_SET, cluster.REPLICA_SET.members))


def pools(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_pool_info."""
    return _result(params, _found(params, api, cluster.POOL, cluster.POOL.members))


def _found(params: Mapping[str, Any], api: Api, kind: Kind, goal: str) -> list[Object] | None:
    """Return the objects, None if the cluster does not know the kind; what is waited for would never come then."""
    terms = terms_from(params, check_mode=True, diff=False, kind=kind)
    _check(params)
    resource = kind.resource(params.get("namespace"), terms.api_version)
    try:
        found = _read(params, api, resource)
        if terms.wait:
            found = _wait(api, resource, _wanted(params, found), _goal(params, goal, terms), terms)
    except NotFound:
        if terms.wait:
            raise
        return None
    return found


def _goal(params: Mapping[str, Any], usual: str, terms: Terms) -> Goal:
    """Return what to wait for: the usual, or a condition in its place; both, where somebody says so."""
    is_both = terms.condition is None or params.get("running") is not None
    return Goal(usual if is_both else "there", may_come=True, condition=terms.condition)


def _result(params: Mapping[str, Any], found: list[Object] | None) -> dict[str, Any]:
    hidden = [list(path) for path in _terms(params).hidden]
    shown = [redact.redacted(field_path.without(one, hidden)) for one in found or ()]
    return {"changed": False, "api_found": found is not None, "resources": shown}


def _terms(params: Mapping[str, Any]) -> Terms:
    return terms_from(params, check_mode=True, diff=False)


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
        found = api.get(resource, name)
        return [] if found is None else [found]
    fields = [*(params.get("field_selectors") or ()), *([f"metadata.name={name}"] if name else ())]
    labels = params.get("label_selectors") or ()
    return api.list(resource, labels=",".join(labels) or None, fields=",".join(fields) or None)


def _wanted(params: Mapping[str, Any], found: list[Object]) -> dict[str, list[str]]:
    """Return the names to wait for by namespace: all that was found; a name also when it is not there yet."""
    wanted: dict[str, list[str]] = {}
    if params.get("name") and params.get("namespace"):
        wanted[params["namespace"]] = [params["name"]]
    else:
        for one in found:
            wanted.setdefault(one["metadata"]["namespace"], []).append(one["metadata"]["name"])
    return wanted


def _wait(api: Api, resource: Resource, wanted: dict[str, list[str]], goal: Goal, terms: Terms) -> list[Object]:
    from .waiting import wait_for

    ready: list[Object] = []
    began = time.monotonic()
    for namespace, names in wanted.items():
        there = Resource(resource.api_version, resource.plural, resource.kind, namespace)
        goals = dict.fromkeys(names, goal)
        for got in wait_for(api, there, goals, timeout_seconds=terms.wait_timeout_seconds, began=began).values():
            if isinstance(got, VirtError):
                raise got
            if got is not None:
                ready.append(got)
    return ready
