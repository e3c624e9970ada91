# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options, and what it exposes, to a Service. Pure.

A Service finds the Pods of guests by their labels: those of one VirtualMachine or instance by the id that KubeVirt puts
on its Pods, those of a replica set by the labels that the set itself goes by.
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
"""Options that name what is exposed."""
_LABEL_LIMIT = 63
_CUT = 54
"""Characters of a longer name that are left in its id; a dash and eight digits follow."""
_SPEC = {
    "type": "type",
    "cluster_ip": "clusterIP",
    "external_ips": "externalIPs",
    "ip_families": "ipFamilies",
    "ip_family_policy": "ipFamilyPolicy",
}
_PORTS = range(1, 65536)

Object = dict[str, Any]


class Wish(NamedTuple):
    """What is to be exposed, and under which name."""

    namespace: str
    name: str
    kind: Kind | None
    """Of the target; None: a selector says which Pods are meant."""
    target: str | None

    @property
    def title(self) -> str:
        """Return kind, namespace and name of the target for messages."""
        return f"{self.kind.name if self.kind else 'Pods'} {self.namespace}/{self.target}"


def wish_from(params: Mapping[str, Any]) -> Wish:
    """Read the options that need no cluster; BadArgument names what cannot be."""
    empty = next((option for option in TARGETS if params.get(option) == ""), None)
    if empty:  # with the name alone, any Service is deleted
        raise BadArgument(f"{empty} is empty; name what is exposed, or leave it out (default(omit, true))")
    named = next((option for option in TARGETS if params.get(option)), None)
    target = params[named] if named else None
    name = params.get("name") or target
    if not name:
        raise BadArgument("name is missing: give it, or name what is exposed (vm, vmi or replicaset)")
    if named:
        paths.check_name(named, target)
    paths.check_service_name("name", name)
    paths.check_namespace("namespace", params["namespace"])
    if params.get("state") != "absent" and not named and not params.get("selector"):
        raise BadArgument("nothing says what is exposed: give vm, vmi or replicaset, or a selector")
    return Wish(params["namespace"], name, TARGETS[named] if named else None, target)


def needs_target(params: Mapping[str, Any], wish: Wish) -> bool:
    """Tell whether what is exposed has to be read: for its UID, its selector or its ports."""
    if wish.kind is None:
        return False
    of_a_set = wish.kind is kinds.REPLICA_SET and not params.get("selector")
    return of_a_set or bool(params.get("owned")) or not params.get("ports")


def declared(params: Mapping[str, Any], wish: Wish, target: Object | None) -> Object:
    """Return the Service as the options declare it. target: what is exposed, if it was read."""
    metadata: Object = {"name": wish.name, "namespace": wish.namespace}
    metadata.update({key: _texts(key, params[key]) for key in ("labels", "annotations") if params.get(key)})
    if params.get("owned") and target is not None:
        metadata["ownerReferences"] = [_owner(target)]
    spec: Object = {field: params[option] for option, field in _SPEC.items() if params.get(option) is not None}
    spec["selector"] = selector_of(params, wish, target)
    ports = _ports(params.get("ports") or []) or _ports_of(wish, target)
    if ports:
        spec["ports"] = ports
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def selector_of(params: Mapping[str, Any], wish: Wish, target: Object | None) -> dict[str, str]:
    """Return the labels of the Pods that are meant."""
    if params.get("selector"):
        return _texts("selector", params["selector"])
    if wish.kind is not kinds.REPLICA_SET:
        return {names.VMI_ID: instance_id(wish.target or "")}
    selector = ((target or {}).get("spec") or {}).get("selector") or {}
    if selector.get("matchExpressions") or not selector.get("matchLabels"):
        raise BadArgument(
            f"{wish.title} goes by more than labels, which a Service cannot; give labels of its template as selector"
        )
    found: dict[str, str] = selector["matchLabels"]
    return found


def over(live: Object, wanted: Object, former: tuple[str, str] | None = None) -> Object:
    """Return the declaration of a Service that is there already: its selector a whole, its other owners kept.

    former: kind and name of what it is not to belong to any more.
    """
    old = (live.get("spec") or {}).get("selector") or {}
    selector = {**dict.fromkeys(old), **wanted["spec"]["selector"]}
    metadata = wanted["metadata"]
    if "ownerReferences" in metadata:
        (ours,) = metadata["ownerReferences"]
        there = live["metadata"].get("ownerReferences") or []
        if any(one.get("uid") == ours["uid"] for one in there):
            metadata = {key: value for key, value in metadata.items() if key != "ownerReferences"}
        else:  # a former one of the same name is gone, and would take the Service with it
            others = [one for one in there if (one.get("kind"), one.get("name")) != (ours["kind"], ours["name"])]
            metadata = {**metadata, "ownerReferences": [*others, ours]}
    elif former is not None:
        there = live["metadata"].get("ownerReferences") or []
        others = [one for one in there if (one.get("kind"), one.get("name")) != former]
        if len(others) < len(there):
            metadata = {**metadata, "ownerReferences": others}
    return {**wanted, "metadata": metadata, "spec": {**wanted["spec"], "selector": selector}}


def instance_id(name: str) -> str:
    """Return the label value by which KubeVirt knows the Pods of an instance."""
    if len(name) <= _LABEL_LIMIT:
        return name
    return f"{name[:_CUT]}-{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"


def _texts(option: str, given: dict[str, Any]) -> dict[str, str]:
    wrong = [key for key, value in given.items() if not isinstance(value, str)]
    if wrong:
        raise BadArgument(f"{option}[{wrong[0]}]: {NOT_TEXT}")
    return given


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
    return [_port(f"ports[{index}]", one, is_only=len(listed) == 1) for index, one in enumerate(listed)]


def _port(where: str, given: Mapping[str, Any], *, is_only: bool) -> Object:
    for option in ("port", "node_port"):
        if given.get(option) is not None and given[option] not in _PORTS:
            raise BadArgument(f"{where}.{option} is {given[option]}: a port is between 1 and 65535")
    if not is_only and not given.get("name"):
        raise BadArgument(f"{where}: a name is missing; the ports of a Service with several have one each")
    port: Object = {"port": given["port"], "protocol": given.get("protocol") or "TCP"}
    port["targetPort"] = _target_port(where, given)
    if given.get("name"):
        port["name"] = given["name"]
    if given.get("node_port"):
        port["nodePort"] = given["node_port"]
    return port


def _target_port(where: str, given: Mapping[str, Any]) -> int | str:
    target = given.get("target_port")
    if target is None:
        target = given["port"]
    elif isinstance(target, str) and target.isdigit():
        target = int(target)
    if isinstance(target, bool) or not isinstance(target, (int, str)) or target == "":
        raise BadArgument(f"{where}.target_port: must be a port's number or name, not {shape(target)}")
    return target


def _ports_of(wish: Wish, target: Object | None) -> list[Object]:
    """Return the ports that the interfaces of a machine declare."""
    machine: Any = target or {}
    for step in (*(wish.kind.machine if wish.kind else ()), "domain", "devices"):
        machine = machine.get(step) or {}
    found = [one for interface in machine.get("interfaces") or () for one in interface.get("ports") or ()]
    several = len(found) > 1
    return [
        {
            **({"name": one.get("name") or f"port-{one['port']}"} if several or one.get("name") else {}),
            "port": one["port"],
            "protocol": one.get("protocol") or "TCP",
            "targetPort": one["port"],
        }
        for one in found
    ]
