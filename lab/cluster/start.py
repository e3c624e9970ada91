# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a lab to what its description says: look at what runs, start what is missing, wait until Pods can be made.

Order, because of what was measured: etcd and API server first, nodes with containerd meanwhile; controllers, kubelets
and proxies only after `/readyz` (a controller manager that comes earlier gives up); then nodes Ready, and the default
ServiceAccount, without which the API server refuses a Pod.
"""

from __future__ import annotations

import datetime
import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lab.cluster.api import Api
from lab.cluster.certificates import control_plane_requests, ensure_certificates, node_requests
from lab.cluster.control_plane import AUDIT_POLICY, ControlPlane, render_admission
from lab.cluster.description import Description
from lab.cluster.kubeconfig import render_kubeconfig, render_webhook_users, write_private
from lab.cluster.manifests import base_objects
from lab.cluster.node import Node
from lab.errors import ApiError, LabError
from lab.images.archive import Archive, keep, kept_archives
from lab.images.containerd import CONTAINERD_SOCKET
from lab.images.imports import has_imported, import_into, mark_imported
from lab.images.store import clone_store, ensure_store
from lab.images.system import ensure_system_archives
from lab.machines import network
from lab.machines.cgroup import freeze
from lab.machines.machine import KUBELET_MASKS, Machine, control_plane_machine, describe_machine, node_machine
from lab.parallel import in_parallel
from lab.paths import Cache, State
from lab.programs.ensure import Programs
from lab.progress import Progress

START_SECONDS = 90
"""Far more than it ever takes, even where the processor is shared."""

_CONTROL_PLANE_SYSCTLS = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/rp_filter": "0"}
_NODE_SYSCTLS = {**_CONTROL_PLANE_SYSCTLS, "net/ipv4/conf/default/rp_filter": "0"}


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
            )
            for number in range(1, description.nodes + 1)
        ]
        self._store: Path | None = None
        self._in_store: list[Archive] = []

    def run(self, archives: list[Archive], *, controllers: bool) -> None:
        self._write_files()
        machine = control_plane_machine(self._state)
        control_plane_pid, is_fresh = self._start_control_plane(machine)
        machine.ensure([self._control_plane.etcd(), self._control_plane.api_server()])
        began = datetime.datetime.now(datetime.UTC)
        with ThreadPoolExecutor(max_workers=1) as pool:
            # The nodes are made while the API server starts.
            made = pool.submit(self._start_nodes, archives, control_plane_pid, relink=is_fresh)
            api = Api(self._addresses.server, self._state.certificates)
            self._wait("the API server's /readyz", api.is_ready, machine)
            if controllers:
                control_plane = self._control_plane
                machine.ensure([control_plane.controller_manager(), control_plane.scheduler()])
            fresh = made.result()
        self._progress("API server is ready")
        in_parallel([partial(self._start_kubelet, node) for node in self._nodes])
        self._wait("the lab's base objects", partial(self._create_base_objects, api), machine)
        if controllers:
            machine.ensure([self._control_plane.storage()])
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._wait("ServiceAccount default/default", lambda: api.get(account) is not None, machine)
        if self._nodes:
            self._wait("nodes to be Ready", partial(self._nodes_are_ready, api, fresh, began), machine)
            self._progress(f"{len(self._nodes)} nodes are Ready")
        api.close()

    def _write_files(self) -> None:
        certificates = self._state.certificates
        requests = control_plane_requests(self._addresses)
        for node in self._nodes:
            requests += node_requests(node.name, str(self._addresses.node(node.number)))
        ensure_certificates(certificates, requests)
        server = self._addresses.server

        def kubeconfig(path: Path, client: str) -> None:
            text = render_kubeconfig(
                name=f"lab-{self._state.name}", server=server, certificates=certificates, client=client
            )
            write_private(path, text)

        kubeconfig(self._state.kubeconfig, "admin")
        for name in ("kube-controller-manager", "kube-scheduler"):
            kubeconfig(self._control_plane.kubeconfig(name), name)
        write_private(self._control_plane.audit_policy(), json.dumps(AUDIT_POLICY))
        webhooks = self._control_plane.kubeconfig("webhooks")
        write_private(webhooks, render_webhook_users(certificates, "front-proxy-client"))
        write_private(self._control_plane.admission(), json.dumps(render_admission(webhooks)))
        for directory in (self._state.audit_log.parent, self._state.shared_volumes, self._state.etcd):
            directory.mkdir(parents=True, exist_ok=True)
        for node in self._nodes:
            kubeconfig(node.kubeconfig("kubelet"), f"{node.name}-client")
            kubeconfig(node.kubeconfig("kube-proxy"), "kube-proxy")
            node.paths.volumes.mkdir(parents=True, exist_ok=True)
            for path, text in node.files().items():
                write_private(path, text)

    def _start_control_plane(self, machine: Machine) -> tuple[int, bool]:
        """Return its pid, and whether it had to be made: then the links of the nodes went with the old one."""
        pid = machine.pid()
        is_fresh = pid is None
        if pid is None:
            self._progress(f"starting the control plane at {self._addresses.server}")
            configuration = describe_machine(
                machine, programs=self._programs, binds=self._program_binds(), sysctls=_CONTROL_PLANE_SYSCTLS, masks={}
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

    def _program_binds(self) -> list[tuple[Path, str]]:
        """The programs at their own paths, wherever the cache lies, and those of a later `up` as well."""
        return [(self._cache.programs, str(self._cache.programs))]

    def _start_nodes(self, archives: list[Archive], control_plane_pid: int, *, relink: bool) -> set[str]:
        """Return the names of the nodes that were made or came back."""
        if not self._nodes:
            return set()
        system = ensure_system_archives(self._cache, self._programs, self._progress)
        kept = [keep(archive, self._state.archives) for archive in archives]
        if any(not node.paths.containerd.exists() for node in self._nodes):
            self._in_store = [*system, *kept]
            self._store = ensure_store(self._cache, self._programs, self._in_store, self._runc, self._progress)
        fresh = in_parallel([partial(self._start_node, node, control_plane_pid, relink) for node in self._nodes])
        numbers = [node.number for node in self._nodes]
        network.run_ip(network.pod_route_script(self._addresses, numbers), pid=control_plane_pid)
        return {node.name for node, is_fresh in zip(self._nodes, fresh, strict=True) if is_fresh}

    def _start_node(self, node: Node, control_plane_pid: int, relink: bool) -> bool:
        machine = node_machine(self._state, node.name)
        if self._store is not None and not node.paths.containerd.exists():
            clone_store(self._store, node.paths.containerd)
            for archive in self._in_store:
                mark_imported(machine, archive)
        is_fresh = machine.is_frozen() or node.name not in network.links_up(pid=control_plane_pid)
        if machine.is_frozen():
            freeze(machine.group, frozen=False)
        pid = machine.pid()
        if pid is None:
            configuration = describe_machine(
                machine,
                programs=self._programs,
                binds=[*self._program_binds(), *node.binds()],
                sysctls=_NODE_SYSCTLS,
                masks=KUBELET_MASKS,
            )
            pid = machine.start(self._programs.node("init"), configuration)
            relink = True
        if relink or "eth0" not in network.links(pid=pid):
            self._link_node(node, pid, control_plane_pid)
            is_fresh = True
        self._route_node(node, pid, control_plane_pid)
        machine.ensure([node.containerd()])
        self._import_missing(machine, pid)
        return is_fresh

    def _link_node(self, node: Node, pid: int, control_plane_pid: int) -> None:
        network.remove_link(node.name, pid=control_plane_pid)
        network.remove_link("eth0", pid=pid)
        network.run_ip(network.node_link_script(node.number, pid), pid=control_plane_pid)
        network.run_ip(network.node_script(self._addresses, node.number), pid=pid)

    def _route_node(self, node: Node, pid: int, control_plane_pid: int) -> None:
        network.set_link(node.name, up=True, pid=control_plane_pid)
        others = [each.number for each in self._nodes if each.number != node.number]
        network.run_ip(network.pod_route_script(self._addresses, others), pid=pid)
        network.run_nft(network.masquerade_rules(self._addresses, node.number), pid=pid)

    def _import_missing(self, machine: Machine, pid: int) -> None:
        socket = Path(f"/proc/{pid}/root{CONTAINERD_SOCKET}")
        self._wait("containerd's socket", socket.exists, machine)
        for archive in kept_archives(self._description.images, self._state.archives):
            if not has_imported(machine, archive):
                self._progress(f"importing {archive.reference} into {machine.name}")
                import_into(machine, archive, self._programs.node("ctr"))

    def _start_kubelet(self, node: Node) -> None:
        node_machine(self._state, node.name).ensure([node.containerd(), node.kubelet(), node.proxy()])

    def _create_base_objects(self, api: Api) -> bool:
        for path, item in base_objects():
            api.create(path, item)
        return True

    def _nodes_are_ready(self, api: Api, fresh: set[str], began: datetime.datetime) -> bool:
        """What a node that has just come back said in its former life does not count: its Lease must be news."""
        nodes = (api.get("/api/v1/nodes") or {}).get("items", [])
        ready = {node["metadata"]["name"] for node in nodes if is_ready(node)}
        if not ready >= {node.name for node in self._nodes}:
            return False
        leases = (api.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases") or {}).get("items", [])
        return {lease["metadata"]["name"] for lease in leases if is_renewed(lease, began)} >= fresh

    def _wait(self, what: str, is_so: Callable[[], bool], machine: Machine) -> None:
        """Ask every few milliseconds: nothing announces these moments."""
        deadline = time.monotonic() + START_SECONDS
        last: ApiError | None = None
        while time.monotonic() < deadline:
            try:
                if is_so():
                    return
            except ApiError as error:
                # Just after /readyz, kube-system and the built-in roles are not there yet.
                if error.status not in (0, 403, 404) and error.status < 500:
                    raise
                last = error
            time.sleep(0.03)
        because = f" (last answer: {last})" if last else ""
        raise LabError(
            f"waited {START_SECONDS} s for {what} on {machine.name}{because}; the logs in {machine.paths.logs} say why"
        )


def is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def is_renewed(lease: dict[str, Any], since: datetime.datetime) -> bool:
    renewed = lease.get("spec", {}).get("renewTime")
    return renewed is not None and datetime.datetime.fromisoformat(renewed) >= since
