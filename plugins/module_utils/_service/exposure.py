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
from .._client.shapes import shape
from .._vm import kinds
from .._vm.kinds import Kind
from ..kubevirt_api import names

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
_PORTS = range(1, 65536)

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
    paths.check_service_name("name", name)
    paths.check_namespace("namespace", params["namespace"])
    if params.get("state") != "absent" and not named and not params.get("selector"):
        raise BadArgument("no object to expose: give vm, vmi or replicaset, or a selector")
    return ServiceRequest(params["namespace"], name, TARGETS[named] if named else None, target)


def needs_target(params: Mapping[str, Any], request: ServiceRequest) -> bool:
    """Tell whether the exposed object must be read, for its UID, selector or ports."""
    if request.kind is None:
        return False
    selects_by_set = request.kind is kinds.REPLICA_SET and not params.get("selector")
    return selects_by_set or bool(params.get("owned")) or not params.get("ports")


def declared(params: Mapping[str, Any], request: ServiceRequest, target: Object | None) -> Object:
    """Return the Service as the options declare it. target: the exposed object, if it was read."""
    metadata: Object = {"name": request.name, "namespace": request.namespace}
    metadata.update({key: _texts(key, params[key]) for key in ("labels", "annotations") if params.get(key)})
    if params.get("owned") and target is not None:
        metadata["ownerReferences"] = [_owner(target)]
    spec: Object = {field: params[option] for option, field in _SPEC.items() if params.get(option) is not None}
    spec["selector"] = selector_of(params, request, target)
    ports = _ports(params.get("ports") or []) or _ports_of(request, target)
    if ports:
        spec["ports"] = ports
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
    """Return the declaration for a live Service: its selector is replaced, its other owners stay.

    former: kind and name of an owner to remove.
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
    return {**wanted, "metadata": metadata, "spec": {**wanted["spec"], "selector": selector}}


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


def _ports(listed: list[Mapping[str, Any]]) -> list[Object]:
    return [_port(f"ports[{index}]", port, is_only=len(listed) == 1) for index, port in enumerate(listed)]


def _port(where: str, options: Mapping[str, Any], *, is_only: bool) -> Object:
    for option in ("port", "node_port"):
        if options.get(option) is not None and options[option] not in _PORTS:
            raise BadArgument(f"{where}.{option} is {options[option]}: a port is between 1 and 65535")
    if not is_only and not options.get("name"):
        raise BadArgument(f"{where}: a name is missing; each port of a Service with several ports needs one")
    port: Object = {"port": options["port"], "protocol": options.get("protocol") or "TCP"}
    port["targetPort"] = _target_port(where, options)
    if options.get("name"):
        port["name"] = options["name"]
    if options.get("node_port"):
        port["nodePort"] = options["node_port"]
    return port


def _target_port(where: str, options: Mapping[str, Any]) -> int | str:
    target = options.get("target_port")
    if target is None:
        target = options["port"]
    elif isinstance(target, str) and target.isdigit():
        target = int(target)
    if isinstance(target, bool) or not isinstance(target, (int, str)) or target == "":
        raise BadArgument(f"{where}.target_port: must be a port's number or name, not {shape(target)}")
    return target


def _ports_of(request: ServiceRequest, target: Object | None) -> list[Object]:
    """Return the ports of a machine's interfaces."""
    machine: Any = target or {}
    for step in (*(request.kind.machine if request.kind else ()), "domain", "devices"):
        machine = machine.get(step) or {}
    ports = [port for interface in machine.get("interfaces") or () for port in interface.get("ports") or ()]
    has_several = len(ports) > 1
    return [
        {
            **({"name": port.get("name") or f"port-{port['port']}"} if has_several or port.get("name") else {}),
            "port": port["port"],
            "protocol": port.get("protocol") or "TCP",
            "targetPort": port["port"],
        }
        for port in ports
    ]
