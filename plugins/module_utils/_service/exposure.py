# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options and the exposed object to a Service. Pure.

A Service selects Pods by labels: Pods of a VirtualMachine or instance by the id that KubeVirt sets on them, Pods of a
replica set by the labels that the set selects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._client import paths
from .._client.errors import NOT_TEXT, BadArgument
from .._vm import kinds
from .._vm.kinds import Kind
from .._vm.request.shape import texts
from ..kubevirt_api import names
from . import ports

TARGETS = {"vm": kinds.VM, "vmi": kinds.VMI, "replicaset": kinds.REPLICA_SET}
"""Options that name the exposed object."""
_LABEL_LIMIT = 63
_CUT = 54
"""Characters of a longer name in its id; a dash and eight digits follow."""
_SPEC = {
    "type": "type",
    "cluster_ip": "clusterIP",
    "external_ips": "externalIPs",
    "ip_families": "ipFamilies",
    "ip_family_policy": "ipFamilyPolicy",
}

Object = dict[str, Any]


class ServiceRequest(NamedTuple):
    """The object to expose, and the name of its Service."""

    namespace: str
    name: str
    kind: Kind | None
    """Kind of the target; None: a selector chooses the Pods."""
    target: str | None

    @property
    def title(self) -> str:
        """Return kind, namespace and name of the target for messages."""
        return f"{self.kind.name if self.kind else 'Pods'} {self.namespace}/{self.target}"


def request_from(params: Mapping[str, Any]) -> ServiceRequest:
    """Read the options, without a cluster. BadArgument names the option that cannot be used."""
    empty = next((option for option in TARGETS if params.get(option) == ""), None)
    if empty:  # ignoring it would delete a Service by its name alone
        raise BadArgument(f"{empty} is empty; name the object to expose, or leave it out (default(omit, true))")
    named = next((option for option in TARGETS if params.get(option)), None)
    target = params[named] if named else None
    name = params.get("name") or target
    if not name:
        raise BadArgument("name is missing: give it, or name the object to expose (vm, vmi or replicaset)")
    if named:
        paths.check_name(named, target)
    _check_service_name(name, named if not params.get("name") else None)
    paths.check_namespace("namespace", params["namespace"])
    if params.get("state") != "absent" and not named and not params.get("selector"):
        raise BadArgument("no object to expose: give vm, vmi or replicaset, or a selector")
    return ServiceRequest(params["namespace"], name, TARGETS[named] if named else None, target)


def _check_service_name(name: str, borrowed_from: str | None) -> None:
    """Check the name of the Service. borrowed_from: the option that names the target, if the Service is named after it.

    A machine's name may have dots and begin with a digit, a Service's may not.
    """
    try:
        paths.check_service_name("name", name)
    except BadArgument as error:
        if borrowed_from is None:
            raise
        raise BadArgument(
            f"{borrowed_from} {name!r} cannot also be the name of its Service, which has lower case letters, digits and"
            " '-', at most 63, a letter first; give the Service another name (option name)"
        ) from error


def needs_target(params: Mapping[str, Any], request: ServiceRequest) -> bool:
    """Tell whether the exposed object must be read, for its UID, selector or ports."""
    if request.kind is None:
        return False
    selects_by_set = request.kind is kinds.REPLICA_SET and not params.get("selector")
    return selects_by_set or bool(params.get("owned")) or not params.get("ports")


def declared(params: Mapping[str, Any], request: ServiceRequest, target: Object | None) -> Object:
    """Return the Service as the options declare it. target: the exposed object, if it was read."""
    metadata: Object = {"name": request.name, "namespace": request.namespace}
    metadata.update({key: texts(key, params[key]) for key in ("labels", "annotations") if params.get(key)})
    if params.get("owned") and target is not None:
        metadata["ownerReferences"] = [_owner(target)]
    spec: Object = {field: params[option] for option, field in _SPEC.items() if params.get(option) is not None}
    spec["selector"] = selector_of(params, request, target)
    listed = ports.declared(params.get("ports") or []) or _ports_of(request, target)
    if listed:
        spec["ports"] = listed
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def selector_of(params: Mapping[str, Any], request: ServiceRequest, target: Object | None) -> dict[str, str]:
    """Return the labels that select the Pods."""
    if params.get("selector"):
        return _texts("selector", params["selector"])
    if request.kind is not kinds.REPLICA_SET:
        return {names.VMI_ID: instance_id(request.target or "")}
    selector = ((target or {}).get("spec") or {}).get("selector") or {}
    if selector.get("matchExpressions") or not selector.get("matchLabels"):
        raise BadArgument(
            f"{request.title} selects by more than labels, which a Service cannot; give labels of its template as"
            " selector"
        )
    labels: dict[str, str] = selector["matchLabels"]
    return labels


def over(live: Object, wanted: Object, removed_owner: tuple[str, str] | None = None) -> Object:
    """Return the declaration for a live Service: its selector is replaced, its other owners stay, and its ports keep
    what the task does not declare.

    removed_owner: kind and name of an owner to remove.
    """
    old = (live.get("spec") or {}).get("selector") or {}
    selector = {**dict.fromkeys(old), **wanted["spec"]["selector"]}
    metadata = wanted["metadata"]
    if "ownerReferences" in metadata:
        (owner_reference,) = metadata["ownerReferences"]
        owners = live["metadata"].get("ownerReferences") or []
        if any(owner.get("uid") == owner_reference["uid"] for owner in owners):
            metadata = {key: value for key, value in metadata.items() if key != "ownerReferences"}
        else:  # an earlier owner of this name is gone: with its reference the Service would be garbage-collected
            other_owners = [
                owner
                for owner in owners
                if (owner.get("kind"), owner.get("name")) != (owner_reference["kind"], owner_reference["name"])
            ]
            metadata = {**metadata, "ownerReferences": [*other_owners, owner_reference]}
    elif removed_owner is not None:
        owners = live["metadata"].get("ownerReferences") or []
        other_owners = [owner for owner in owners if (owner.get("kind"), owner.get("name")) != removed_owner]
        if len(other_owners) < len(owners):
            metadata = {**metadata, "ownerReferences": other_owners}
    spec = {**wanted["spec"], "selector": selector}
    if "ports" in spec:
        spec["ports"] = ports.over((live.get("spec") or {}).get("ports") or [], spec["ports"])
    return {**wanted, "metadata": metadata, "spec": spec}


def instance_id(name: str) -> str:
    """Return the label value of the Pods of an instance."""
    if len(name) <= _LABEL_LIMIT:
        return name
    return f"{name[:_CUT]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _texts(option: str, options: dict[str, Any]) -> dict[str, str]:
    wrong = [key for key, value in options.items() if not isinstance(value, str)]
    if wrong:
        raise BadArgument(f"{option}[{wrong[0]}]: {NOT_TEXT}")
    return options


def _owner(target: Object) -> Object:
    metadata = target["metadata"]
    return {
        "apiVersion": target.get("apiVersion") or names.API_VERSION,
        "kind": target["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": False,
    }


def _ports_of(request: ServiceRequest, target: Object | None) -> list[Object]:
    """Return the ports of a machine's interfaces."""
    machine: Any = target or {}
    for step in (*(request.kind.machine if request.kind else ()), "domain", "devices"):
        machine = machine.get(step) or {}
    interfaces = machine.get("interfaces") or ()
    return ports.of_guest([port for interface in interfaces for port in interface.get("ports") or ()])
