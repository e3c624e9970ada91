# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one Service into its state: read, compare, at most one write. Thin; what it says is in exposure.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import redact
from .._client.api import Api, Resource
from .._client.argspec import auth_argument_spec
from .._client.errors import BadArgument, Conflict, NotFound, TimedOut, VirtError
from .._client.waiter import Verdict, Waiter
from .._vm import kinds
from .._vm.merge import compare, overlay
from . import exposure, service_owner
from .exposure import Wish

ATTEMPTS = 4
"""Rounds against others who write the same Service meanwhile."""
TYPES = ("ClusterIP", "NodePort", "LoadBalancer")

Object = dict[str, Any]


def argument_spec() -> dict[str, Any]:
    """Return the options of kubevirt_service."""
    port = {
        "port": {"type": "int", "required": True},
        "target_port": {"type": "raw"},
        "protocol": {"type": "str", "choices": ["TCP", "UDP", "SCTP"], "default": "TCP"},
        "name": {"type": "str"},
        "node_port": {"type": "int"},
    }
    return {
        **auth_argument_spec(),
        "name": {"type": "str"},
        "namespace": {"type": "str", "required": True},
        "vm": {"type": "str"},
        "vmi": {"type": "str"},
        "replicaset": {"type": "str"},
        "selector": {"type": "dict"},
        "ports": {"type": "list", "elements": "dict", "options": port},
        "type": {"type": "str", "choices": list(TYPES)},
        "cluster_ip": {"type": "str"},
        "external_ips": {"type": "list", "elements": "str"},
        "ip_families": {"type": "list", "elements": "str", "choices": ["IPv4", "IPv6"]},
        "ip_family_policy": {"type": "str", "choices": ["SingleStack", "PreferDualStack", "RequireDualStack"]},
        "labels": {"type": "dict"},
        "annotations": {"type": "dict"},
        "owned": {"type": "bool", "default": True},
        "state": {"type": "str", "choices": ["absent", "present"], "default": "present"},
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 120},
    }


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Return the result of kubevirt_service."""
    wish = exposure.wish_from(params)
    if params["wait_timeout"] <= 0:
        raise BadArgument(f"wait_timeout is {params['wait_timeout']}: it must be positive, in seconds")
    step = _absent if params["state"] == "absent" else _present
    for attempt in range(1, ATTEMPTS + 1):
        try:
            method, before, after = step(params, api, wish, check_mode)
            break
        except Conflict:
            if attempt == ATTEMPTS:
                raise
    result: dict[str, Any] = {"changed": method is not None, "result": redact.redacted(after or {})}
    if method is not None:
        result["method"] = method
    if diff and method is not None:
        sides = [compare.content(one) if one else {} for one in (before, after)]
        result["diff"] = {"before": redact.redacted(sides[0]), "after": redact.redacted(sides[1], unlike=sides[0])}
    if params["wait"] and not check_mode:
        result["result"] = redact.redacted(_waited(params, api, wish, after, changed=method is not None))
    return result


def _services(wish: Wish) -> Resource:
    return Resource("v1", "services", "Service", wish.namespace)


def _absent(
    params: Mapping[str, Any], api: Api, wish: Wish, check_mode: bool
) -> tuple[str | None, Object | None, Object | None]:
    live = api.get(_services(wish), wish.name)
    if live is None or live["metadata"].get("deletionTimestamp"):
        return None, live, None
    _refuse_others(params, wish, live, _own(params, api, wish, live))
    there = api.delete(_services(wish), wish.name, {}, dry_run=check_mode)
    return "delete" if there else None, live, None


def _present(
    params: Mapping[str, Any], api: Api, wish: Wish, check_mode: bool
) -> tuple[str | None, Object | None, Object | None]:
    live = api.get(_services(wish), wish.name)
    wanted = exposure.declared(params, wish, _target(params, api, wish, check_mode))
    if live is None:
        if not wanted["spec"].get("ports"):
            raise BadArgument(f"ports are missing: {wish.title} declares none at its interfaces, so give the option")
        return "create", None, api.create(_services(wish), wanted, dry_run=check_mode)
    if live["metadata"].get("deletionTimestamp"):
        raise VirtError(f"Service {wish.namespace}/{wish.name} is being deleted; try again when it is gone")
    _refuse_others(params, wish, live, wanted["spec"]["selector"])
    if not params.get("ports"):
        wanted["spec"].pop("ports", None)  # it has some
    former = (wish.kind.name, wish.target or "") if wish.kind is not None and not params["owned"] else None
    patch = compare.merge_patch(live, overlay.over_live(live, exposure.over(live, wanted, former)))
    if not patch:
        return None, live, live
    version = {"resourceVersion": live["metadata"]["resourceVersion"]}  # lists rest on how they were
    patch = {**patch, "metadata": {**(patch.get("metadata") or {}), **version}}
    written = api.patch(_services(wish), wish.name, patch, dry_run=check_mode)
    return (None if compare.is_same_content(live, written) else "patch"), live, written


def _refuse_others(params: Mapping[str, Any], wish: Wish, live: Object, own: Mapping[str, str]) -> None:
    if found := service_owner.others(params, wish, live, own):
        raise VirtError(found)


def _own(params: Mapping[str, Any], api: Api, wish: Wish, live: Object) -> dict[str, str]:
    """Return by which labels a Service of this task finds Pods; those of a set are read only where that decides."""
    if wish.kind is None or params.get("selector") or service_owner.belongs(wish, live):
        return {}
    is_set = wish.kind is kinds.REPLICA_SET
    try:
        found = api.get(wish.kind.resource(wish.namespace), wish.target or "") if is_set else None
        return exposure.selector_of(params, wish, found)
    except (BadArgument, NotFound):  # a set that is gone, or goes by more than labels
        return {}


def _target(params: Mapping[str, Any], api: Api, wish: Wish, check_mode: bool) -> Object | None:
    if wish.kind is None or not exposure.needs_target(params, wish):
        return None
    found = api.get(wish.kind.resource(wish.namespace), wish.target or "")
    is_told = params.get("ports") and (params.get("selector") or wish.kind is not kinds.REPLICA_SET)
    foreseen = check_mode and is_told
    if found is None and not foreseen:  # in check mode an earlier task may be what makes it
        raise VirtError(
            f"{wish.title} is not there, so Service {wish.namespace}/{wish.name} cannot belong to it; create it first,"
            " or say all that the Service is (ports, selector) and set owned=false"
        )
    return found


def _waited(params: Mapping[str, Any], api: Api, wish: Wish, after: Object | None, *, changed: bool) -> Object:
    """Wait until a load balancer has given its address, or the Service is gone; any other is ready at once."""
    gone = params["state"] == "absent"
    if not gone and ((after or {}).get("spec") or {}).get("type") != "LoadBalancer":
        return after or {}

    def judge(_name: str, obj: Object | None) -> Verdict:
        if gone or obj is None:
            return Verdict(done=gone and obj is None, hopeless=None if gone else "somebody deleted it meanwhile")
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        return Verdict(done=bool(balancer.get("ingress")))

    deadline = time.monotonic() + params["wait_timeout"]
    reached = Waiter(api, _services(wish), judge, deadline=deadline).until([wish.name])[wish.name]
    if reached.verdict.done:
        return reached.obj or {}
    why = reached.verdict.hopeless or reached.trouble or ("it is still there" if gone else "no address was given to it")
    wanted = "gone" if gone else "reachable"
    title = f"Service {wish.namespace}/{wish.name}"
    raise TimedOut(f"{title} is not {wanted} after {params['wait_timeout']} s: {why}", changed=changed)
