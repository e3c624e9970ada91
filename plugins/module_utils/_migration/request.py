# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task's request for each machine, checked without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .._client import paths
from .._client.errors import BadArgument
from .._vm.kinds import VMI, Kind
from .._vm.request import shape

MIGRATION = Kind("VirtualMachineInstanceMigration", "virtualmachineinstancemigrations", ())
_PLACES = ("target_node", "node_selector")
_TEXTS = ("name", "namespace", "from_node", "target_node")


class MigrationRequest(NamedTuple):
    """One machine and its target."""

    namespace: str
    name: str
    state: str = "present"
    """present: migrate; absent: cancel."""
    from_node: str | None = None
    """Migrate the machine only if it is on this node."""
    target_node: str | None = None
    node_selector: Mapping[str, str] = MappingProxyType({})
    """Labels of the target node."""
    is_named: bool = True
    """The task names the machine. Otherwise it was listed on from_node, and may be gone by now."""

    @property
    def title(self) -> str:
        """Return kind, namespace and name for messages."""
        return f"{VMI.name} {self.namespace}/{self.name}"

    @property
    def place(self) -> str:
        """Return the target in words, "" for any other node."""
        if self.target_node:
            return f"node {self.target_node}"
        labels = ", ".join(f"{key}={value}" for key, value in self.node_selector.items())
        return f"a node with {labels}" if labels else ""


def requests_from(params: Mapping[str, Any]) -> list[MigrationRequest] | None:
    """Return one request per named machine, None if the task means all machines of from_node."""
    parallel = params.get("parallel")
    if parallel is not None and parallel < 1:
        raise BadArgument(f"parallel is {parallel}: at least one is migrated at a time")
    if params.get("vms") is None:
        if params.get("name") is None and params.get("from_node"):
            _check(params)
            return None
        return [_request(params)]
    requests, problems = [], []
    for index, entry in enumerate(params["vms"]):
        try:
            requests.append(_request(_filled(entry, params)))
        except BadArgument as problem:
            problems.append(f"vms[{index}]: {problem.message}")
    listed: set[tuple[str, str]] = set()
    for request in requests:
        if (request.namespace, request.name) in listed:
            problems.append(f"vms: {request.title} is listed twice")
        listed.add((request.namespace, request.name))
    if problems:
        raise BadArgument("; ".join(problems))
    return requests


def request_for(params: Mapping[str, Any], vmi: Mapping[str, Any]) -> MigrationRequest:
    """Return the request for one of the machines of from_node."""
    metadata = vmi["metadata"]
    request = _request({**params, "name": metadata["name"], "namespace": metadata.get("namespace")})
    return request._replace(is_named=False)


def _filled(entry: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry completed with the task's options. A target of the entry overrides both target options."""
    own = {key: value for key, value in entry.items() if value is not None}
    task = {key: params.get(key) for key in ("namespace", "state", "from_node", *_PLACES)}
    if any(key in own for key in _PLACES) or own.get("state") == "absent":
        task.update(dict.fromkeys(_PLACES))
    return {**task, **own}


def _request(params: Mapping[str, Any]) -> MigrationRequest:
    _check(params)
    if not params.get("name"):
        raise BadArgument("name is missing: name the machine, or give from_node for all machines of a node")
    if not params.get("namespace"):
        raise BadArgument(f"namespace is missing: give the namespace of {params['name']}")
    return MigrationRequest(
        namespace=params["namespace"],
        name=params["name"],
        state=params.get("state") or "present",
        from_node=params.get("from_node"),
        target_node=params.get("target_node"),
        node_selector=dict(params.get("node_selector") or {}),
    )


def _check(params: Mapping[str, Any]) -> None:
    for option in _TEXTS:
        if params.get(option) == "":
            raise BadArgument(f"{option} is empty; leave it out, or write {{{{ ... | default(omit, true) }}}}")
    if params.get("namespace"):
        paths.check_namespace("namespace", params["namespace"])
    for option in ("name", "from_node", "target_node"):
        if params.get(option):
            paths.check_name(option, params[option])
    places = [option for option in _PLACES if params.get(option) is not None]
    if params.get("state") == "absent" and places:
        raise BadArgument(f"{places[0]} is the target of a migration; state=absent starts none: leave it out")
    if params.get("target_node") and params.get("target_node") == params.get("from_node"):
        raise BadArgument(f"from_node and target_node are both {params['from_node']}; name two different nodes")
    if params.get("node_selector") is not None:
        if not params["node_selector"]:
            raise BadArgument("node_selector is empty; leave it out for any node")
        for key, value in shape.texts("node_selector", params["node_selector"]).items():
            paths.check_label("node_selector", key, value)
