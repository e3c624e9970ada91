# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one Service into its state: read, compare, at most one write. exposure.py declares the Service."""

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
from .exposure import ServiceRequest

ATTEMPTS = 4
"""Rounds while others write the same Service."""
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
    request = exposure.request_from(params)
    if params["wait_timeout"] <= 0:
        raise BadArgument(f"wait_timeout is {params['wait_timeout']}: it must be positive, in seconds")
    step = _absent if params["state"] == "absent" else _present
    for attempt in range(1, ATTEMPTS + 1):
        try:
            method, before, after = step(params, api, request, check_mode)
            break
        except Conflict:
            if attempt == ATTEMPTS:
                raise
    result: dict[str, Any] = {"changed": method is not None, "result": redact.redacted(after or {})}
    if method is not None:
        result["method"] = method
    if diff and method is not None:
        sides = [compare.content(side) if side else {} for side in (before, after)]
        result["diff"] = {"before": redact.redacted(sides[0]), "after": redact.redacted(sides[1], unlike=sides[0])}
    if params["wait"] and not check_mode:
        result["result"] = redact.redacted(_waited(params, api, request, after, changed=method is not None))
    return result


def _services(request: ServiceRequest) -> Resource:
    return Resource("v1", "services", "Service", request.namespace)


def _absent(
    params: Mapping[str, Any], api: Api, request: ServiceRequest, check_mode: bool
) -> tuple[str | None, Object | None, Object | None]:
    live = api.get(_services(request), request.name)
    if live is None or live["metadata"].get("deletionTimestamp"):
        return None, live, None
    _refuse_others(params, request, live, _own_selector(params, api, request, live))
    existed = api.delete(_services(request), request.name, {}, dry_run=check_mode)
    return "delete" if existed else None, live, None


def _present(
    params: Mapping[str, Any], api: Api, request: ServiceRequest, check_mode: bool
) -> tuple[str | None, Object | None, Object | None]:
    live = api.get(_services(request), request.name)
    target = _target(params, api, request, check_mode)
    if check_mode and target is None and _is_target_used(params, request):  # an earlier task may create it
        created: Object = {"metadata": {"name": request.name, "namespace": request.namespace}}
        return ("create", None, created) if live is None else (None, live, live)
    declared = exposure.declared(params, request, target)
    if live is not None and live["metadata"].get("deletionTimestamp"):
        if check_mode:  # a dry run would meet the Service that is being deleted
            return "create", live, declared
        from .._vm.write import removal

        removal.wait_until_gone(api, _services(request), live, params["wait_timeout"])
        live = None
    if live is None:
        if not declared["spec"].get("ports"):
            raise BadArgument(f"ports are missing: {request.title} declares none at its interfaces, so give the option")
        return "create", None, _created(api, request, overlay.over_live({}, declared), check_mode)
    _refuse_others(params, request, live, declared["spec"]["selector"])
    if not params.get("ports"):
        declared["spec"].pop("ports", None)  # a task without ports keeps the ports of the live Service
    removed_owner = (
        (request.kind.name, request.target or "") if request.kind is not None and not params["owned"] else None
    )
    patch = compare.merge_patch(live, overlay.over_live(live, exposure.over(live, declared, removed_owner)))
    if not patch:
        return None, live, live
    # The patch contains lists that were computed from this version.
    version = {"resourceVersion": live["metadata"]["resourceVersion"]}
    patch = {**patch, "metadata": {**(patch.get("metadata") or {}), **version}}
    written = api.patch(_services(request), request.name, patch, dry_run=check_mode)
    return (None if compare.is_same_content(live, written) else "patch"), live, written


def _created(api: Api, request: ServiceRequest, declared: Object, check_mode: bool) -> Object:
    try:
        return api.create(_services(request), declared, dry_run=check_mode)
    except NotFound as error:  # in check mode an earlier task may create the namespace
        if check_mode and error.facts.get("server_reason"):
            return declared
        raise


def _refuse_others(params: Mapping[str, Any], request: ServiceRequest, live: Object, own: Mapping[str, str]) -> None:
    if text := service_owner.refusal(params, request, live, own):
        raise VirtError(text)


def _own_selector(params: Mapping[str, Any], api: Api, request: ServiceRequest, live: Object) -> dict[str, str]:
    """Return the selector of a Service of this task. The target set is read only if its labels matter."""
    if request.kind is None or params.get("selector") or service_owner.belongs(request, live):
        return {}
    is_set = request.kind is kinds.REPLICA_SET
    try:
        target = api.get(request.kind.resource(request.namespace), request.target or "") if is_set else None
        return exposure.selector_of(params, request, target)
    except (BadArgument, NotFound):  # the set is gone, or selects not only by labels
        return {}


def _target(params: Mapping[str, Any], api: Api, request: ServiceRequest, check_mode: bool) -> Object | None:
    if request.kind is None or not exposure.needs_target(params, request):
        return None
    try:
        target = api.get(request.kind.resource(request.namespace), request.target or "")
    except NotFound:  # the cluster does not know the kind
        if not check_mode:
            raise
        target = None
    if target is None and not check_mode:  # in check mode an earlier task may create it
        from .._vm import missing

        raise VirtError(
            f"Service {request.namespace}/{request.name} cannot expose {request.title}:"
            f" {missing.reason(api, request.namespace, request.kind)}, or create it first. Without it, give ports and"
            " selector of the Service and set owned=false"
        )
    return target


def _is_target_used(params: Mapping[str, Any], request: ServiceRequest) -> bool:
    """Tell whether ports or labels come from the exposed object."""
    is_declared = params.get("ports") and (params.get("selector") or request.kind is not kinds.REPLICA_SET)
    return request.kind is not None and not is_declared


def _waited(
    params: Mapping[str, Any], api: Api, request: ServiceRequest, after: Object | None, *, changed: bool
) -> Object:
    """Wait until the Service has its load balancer's address, or is gone. Other Services are ready at once."""
    is_absent = params["state"] == "absent"
    if not is_absent and ((after or {}).get("spec") or {}).get("type") != "LoadBalancer":
        return after or {}

    def judge(_name: str, obj: Object | None) -> Verdict:
        if is_absent or obj is None:
            return Verdict(
                done=is_absent and obj is None, hopeless=None if is_absent else "somebody deleted it meanwhile"
            )
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        return Verdict(done=bool(balancer.get("ingress")))

    deadline = time.monotonic() + params["wait_timeout"]
    reached = Waiter(api, _services(request), judge, deadline=deadline).until([request.name])[request.name]
    if reached.verdict.done:
        return reached.obj or {}
    reason = reached.verdict.hopeless or reached.trouble or ("it still exists" if is_absent else "it has no address")
    goal = "gone" if is_absent else "reachable"
    title = f"Service {request.namespace}/{request.name}"
    raise TimedOut(f"{title} is not {goal} after {params['wait_timeout']} s: {reason}", changed=changed)
