# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what installed.py, owned_objects.py and upgrade_status.py decide from. No decisions here."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._client import paths
from .._client.api import Api, Resource
from .._client.errors import NotFound, VirtError
from . import image_volumes, owned_objects, placement, upgrade_status, versions
from .installed import MANAGED_BY, MANAGER, MIGRATION, assess, identity
from .kinds import BY_KIND, DEFINITION, DEPLOYMENT, MADE_KINDS, NAMESPACE, MadeKind
from .readiness import not_ready
from .serving import wait_until_serving

Object = dict[str, Any]
_NODES = Resource("v1", "nodes", "Node", None)
_MACHINES = (
    # Pools are deleted before their machines, which they would create again.
    Resource("pool.kubevirt.io/v1beta1", "virtualmachinepools", "VirtualMachinePool", None),
    # Sets are deleted before their instances, which they would replace.
    Resource("kubevirt.io/v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet", None),
    # Migrations are deleted before their machines: virt-controller removes their finalizer only when they are over.
    Resource("kubevirt.io/v1", "virtualmachineinstancemigrations", MIGRATION, None),
    Resource("kubevirt.io/v1", "virtualmachines", "VirtualMachine", None),
    Resource("kubevirt.io/v1", "virtualmachineinstances", "VirtualMachineInstance", None),
)


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, **_modes: bool) -> dict[str, Any]:
    """Return the result of kubevirt_control_plane_info."""
    if params["namespace"]:
        paths.check_namespace("namespace", params["namespace"])
    is_awaited = params["wait"] and not check_mode
    managed, nodes = list_managed(api), api.list(_NODES)
    machines = [obj for resource in _MACHINES for obj in _list_if_known(api, resource)]
    installed = assess(
        api.get(DEFINITION.resource(), "kubevirts.kubevirt.io"),
        namespace=api.get(NAMESPACE.resource(), params["namespace"]) if params["namespace"] else None,
        deployments=[obj for obj in managed if obj["kind"] == DEPLOYMENT.kind],
        workloads=machines,
        nodes=nodes,
    )
    owned = owned_objects.owned(managed, params["namespace"] or installed.namespace)
    definitions, directed = params["definitions"], (params["node_selector"], params["tolerations"])
    if is_awaited and not any(obj["kind"] == DEPLOYMENT.kind for obj in owned):
        raise VirtError(
            f"there is nothing to wait for: the cluster has {installed.evidence or 'no control plane'} and no component"
            " of this collection; install it with role virtops.kubevirt.control_plane, or leave wait out"
        )
    version = versions.release(api.version())
    silent = wait_until_serving(api, owned, time.monotonic() + params["wait_timeout"]) if is_awaited else []
    return {
        "changed": False,
        "check_mode": check_mode,
        **installed.to_result(),
        "made": [identity(obj) for obj in owned],
        "superfluous": [identity(obj) for obj in owned_objects.superfluous(owned, definitions)],
        "namesakes": owned_objects.namesakes(list(_others(api, owned, definitions)), owned, definitions),
        "not_ready_nodes": silent,
        "components": upgrade_status.components(owned),
        "in_other_launchers": upgrade_status.in_other_launchers(machines, image)
        if (image := params["launcher_image"])
        else [],
        "server_origin": api.origin,
        "server_version": version,
        "api_server_has_image_volumes": image_volumes.has_api_server(api, version),
        "nodes": [node["metadata"]["name"] for node in nodes],
        "nodes_not_ready": not_ready(nodes),
        "control_plane_nodes": placement.control_plane_nodes(nodes, *directed),
        "kept_control_plane_nodes": placement.kept_control_plane_nodes(nodes, *directed),
        "nodes_without_image_volumes": sorted(
            image_volumes.runtimes_without(nodes) + image_volumes.kubelets_without(api, nodes)
        ),
        "has_pod_monitors": api.serves("monitoring.coreos.com"),
    }


def list_managed(api: Api) -> list[Object]:
    """Return the objects with our label, of the kinds that the role creates."""
    labels = f"{MANAGED_BY}={MANAGER}"
    return [obj for kind in MADE_KINDS for obj in _list_kind(api, kind, labels)]


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
    """Read the objects that have the name of a wanted object and that the role did not create."""
    owned = {owned_objects.key(obj) for obj in ours}
    for obj in wanted:
        kind = BY_KIND.get(obj["kind"])
        if kind is None or owned_objects.key(obj) in owned:
            continue
        try:
            current = api.get(kind.resource(obj["metadata"].get("namespace")), obj["metadata"]["name"])
        except NotFound:
            continue
        if current is not None:
            yield current
