# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what installed.assess and made.py need from a cluster. No decisions here."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._client import paths
from .._client.api import Api, Resource
from .._client.errors import NotFound, VirtError
from . import owned_objects, placement, upgrade_status, versions
from .installed import MANAGED_BY, MANAGER, assess, identity
from .kinds import BY_KIND, DEFINITION, DEPLOYMENT, MADE_KINDS, NAMESPACE, MadeKind
from .readiness import not_ready
from .serving import wait_until_serving

Object = dict[str, Any]
_NODES = Resource("v1", "nodes", "Node", None)
_MACHINES = (
    # Pools are deleted before their machines, which they would make anew.
    Resource("pool.kubevirt.io/v1beta1", "virtualmachinepools", "VirtualMachinePool", None),
    # Sets are deleted before their instances, which they would replace.
    Resource("kubevirt.io/v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet", None),
    # Migrations before the machines that they move: they are held until that is over, by virt-controller alone.
    Resource("kubevirt.io/v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration", None),
    Resource("kubevirt.io/v1", "virtualmachines", "VirtualMachine", None),
    Resource("kubevirt.io/v1", "virtualmachineinstances", "VirtualMachineInstance", None),
)


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, **_modes: bool) -> dict[str, Any]:
    """Do what module kubevirt_control_plane_info does."""
    if params["namespace"]:
        paths.check_namespace("namespace", params["namespace"])
    is_awaited = params["wait"] and not check_mode  # for what was not done
    managed, nodes = list_managed(api), api.list(_NODES)
    machines = [obj for resource in _MACHINES for obj in _list_if_known(api, resource)]
    installed = assess(
        api.get(DEFINITION.resource(), "kubevirts.kubevirt.io"),
        namespace=api.get(NAMESPACE.resource(), params["namespace"]) if params["namespace"] else None,
        deployments=[one for one in managed if one["kind"] == DEPLOYMENT.kind],
        workloads=machines,
        nodes=nodes,
    )
    ours = owned_objects.made(managed, params["namespace"] or installed.namespace)
    wanted, directed = params["definitions"], (params["node_selector"], params["tolerations"])
    if is_awaited and not any(one["kind"] == DEPLOYMENT.kind for one in ours):
        raise VirtError(
            f"there is nothing to wait for: {installed.evidence or 'no control plane'} is here, and no component of"
            " this collection's; install it with role virtops.kubevirt.control_plane, or leave wait out"
        )
    silent = wait_until_serving(api, ours, time.monotonic() + params["wait_timeout"]) if is_awaited else []
    return {
        "changed": False,
        "check_mode": check_mode,
        **installed.to_result(),
        "made": [identity(one) for one in ours],
        "superfluous": [identity(one) for one in owned_objects.superfluous(ours, wanted)],
        "namesakes": owned_objects.namesakes(list(_others(api, ours, wanted)), ours, wanted),
        "not_ready_nodes": silent,
        "components": upgrade_status.components(ours),
        "in_other_launchers": upgrade_status.in_other_launchers(machines, image)
        if (image := params["launcher_image"])
        else [],
        "server_version": versions.release(api.version()),
        "nodes": [one["metadata"]["name"] for one in nodes],
        "nodes_not_ready": not_ready(nodes),
        "control_plane_nodes": placement.control_plane_nodes(nodes, *directed),
        "kept_control_plane_nodes": placement.kept_control_plane_nodes(nodes, *directed),
        "nodes_without_image_volumes": versions.without_image_volumes(nodes),
        "has_pod_monitors": api.serves("monitoring.coreos.com"),
    }


def list_managed(api: Api) -> list[Object]:
    """Return all that carries our label, of the kinds that the role makes."""
    ours = f"{MANAGED_BY}={MANAGER}"
    return [obj for kind in MADE_KINDS for obj in _list_kind(api, kind, ours)]


def _list_kind(api: Api, kind: MadeKind, labels: str) -> list[Object]:
    if kind.is_always_served:
        return api.list(kind.resource(), labels=labels)
    return _list_if_known(api, kind.resource(), labels)


def _list_if_known(api: Api, resource: Resource, labels: str | None = None) -> list[Object]:
    try:
        return api.list(resource, labels=labels)
    except NotFound:
        return []


def _others(api: Api, ours: Iterable[Object], wanted: Sequence[Object]) -> Iterable[Object]:
    """Read what has the name of an object that is wanted, and is not among ours."""
    known = {owned_objects.key(one) for one in ours}
    for one in wanted:
        kind = BY_KIND.get(one["kind"])
        if kind is None or owned_objects.key(one) in known:
            continue
        try:
            found = api.get(kind.resource(one["metadata"].get("namespace")), one["metadata"]["name"])
        except NotFound:
            continue
        if found is not None:
            yield found
