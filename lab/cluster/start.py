# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a lab up to its description: check what runs, start what is missing, wait until Pods can be created.

The order comes from measurements: etcd and API server first, nodes with containerd in parallel; controllers, kubelets
and proxies after `/readyz` (a controller manager that starts earlier gives up); then the nodes are Ready and the
default ServiceAccount exists, without which the API server refuses a Pod.
"""

from __future__ import annotations

import datetime
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lab.cluster.api import Api
from lab.cluster.control_plane import ControlPlane
from lab.cluster.description import Description
from lab.cluster.files import write_files
from lab.cluster.manifests import base_objects
from lab.cluster.node import Node
from lab.cluster.start_nodes import NodeStarter
from lab.cluster.waiting import is_ready, is_renewed, wait_until
from lab.images.archive import Archive
from lab.machines import network
from lab.machines.cgroup import freeze
from lab.machines.machine import Machine, control_plane_machine, describe_machine, node_machine
from lab.parallel import in_parallel
from lab.paths import Cache, State
from lab.programs.ensure import Programs
from lab.progress import Progress

_SYSCTLS = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/rp_filter": "0"}


class Starter:
    """One run of `up`."""

    def __init__(
        self, state: State, description: Description, programs: Programs, *, cache: Cache, progress: Progress
    ) -> None:
        self._state, self._description, self._programs = state, description, programs
        self._cache, self._progress = cache, progress
        self._addresses = description.addresses
        self._control_plane = ControlPlane(
            state=state,
            addresses=self._addresses,
            programs=programs,
            node_grace_seconds=description.node_grace_seconds,
            feature_gates=description.feature_gates,
            distribution=description.distribution,
        )
        runc = programs.runc or shutil.which("runc")
        assert runc is not None, "preflight has looked for it"
        self._runc = str(runc)
        self._nodes = [
            Node(
                state=state,
                addresses=self._addresses,
                programs=programs,
                number=number,
                runc=self._runc,
                feature_gates=description.feature_gates,
                distribution=description.distribution,
            )
            for number in range(1, description.nodes + 1)
        ]
        self._node_starter = NodeStarter(state, description, programs, self._nodes, cache=cache, progress=progress)

    def run(self, archives: list[Archive], *, controllers: bool) -> None:
        write_files(self._state, self._control_plane, self._nodes)
        machine = control_plane_machine(self._state)
        control_plane_pid, is_fresh = self._start_control_plane(machine)
        machine.ensure([self._control_plane.etcd(), self._control_plane.api_server()])
        began = datetime.datetime.now(datetime.UTC)
        with ThreadPoolExecutor(max_workers=1) as pool:
            # The nodes start while the API server starts.
            future = pool.submit(self._node_starter.start, archives, control_plane_pid, relink=is_fresh)
            api = Api(self._addresses.server, self._state.certificates)
            wait_until("the API server's /readyz", api.is_ready, machine)
            if controllers:
                control_plane = self._control_plane
                machine.ensure([control_plane.controller_manager(), control_plane.scheduler()])
            fresh = future.result()
        self._progress("API server is ready")
        in_parallel([partial(self._start_kubelet, node) for node in self._nodes])
        wait_until("the lab's base objects", partial(self._create_base_objects, api), machine)
        if controllers:
            machine.ensure([self._control_plane.storage()])
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            wait_until("ServiceAccount default/default", lambda: api.get(account) is not None, machine)
        if self._nodes:
            wait_until("nodes to be Ready", partial(self._nodes_are_ready, api, fresh, began), machine)
            for node in self._nodes:
                self._label(api, node)
            self._progress(f"{len(self._nodes)} nodes are Ready")
        api.close()

    def _start_control_plane(self, machine: Machine) -> tuple[int, bool]:
        """Return its pid, and whether it is new. The links of the nodes are gone with the old control plane."""
        pid = machine.pid()
        is_fresh = pid is None
        if pid is None:
            self._progress(f"starting the control plane at {self._addresses.server}")
            configuration = describe_machine(
                machine,
                programs=self._programs,
                # All programs, at their own paths: a later `up` may run others.
                binds=[(self._cache.programs, str(self._cache.programs))],
                sysctls=_SYSCTLS,
                masks={},
            )
            pid = machine.start(self._programs.node("init"), configuration)
            network.remove_link(self._addresses.host_link)
        elif machine.is_frozen():
            freeze(machine.group, frozen=False)
        if network.BRIDGE not in network.links(pid=pid):
            network.run_ip(network.control_plane_script(self._addresses), pid=pid)
        if self._addresses.host_link not in network.links():
            network.run_ip(network.host_link_script(self._addresses, pid))
            network.run_ip(network.bridge_host_script(), pid=pid)
        return pid, is_fresh

    def _start_kubelet(self, node: Node) -> None:
        node_machine(self._state, node.name).ensure([node.containerd(), node.kubelet(), node.proxy()])

    def _label(self, api: Api, node: Node) -> None:
        """A kubelet may not give itself the label of a role."""
        if labels := self._description.distribution.node_labels(node.number):
            api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": labels}})

    def _create_base_objects(self, api: Api) -> bool:
        for path, obj in base_objects(self._description.distribution.cluster_domain):
            api.create(path, obj)
        return True

    def _nodes_are_ready(self, api: Api, fresh: set[str], began: datetime.datetime) -> bool:
        """Tell whether all nodes are Ready. A restarted node also needs a Lease that it renewed after the restart."""
        nodes = (api.get("/api/v1/nodes") or {}).get("items", [])
        ready = {node["metadata"]["name"] for node in nodes if is_ready(node)}
        if not ready >= {node.name for node in self._nodes}:
            return False
        leases = (api.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases") or {}).get("items", [])
        return {lease["metadata"]["name"] for lease in leases if is_renewed(lease, began)} >= fresh
