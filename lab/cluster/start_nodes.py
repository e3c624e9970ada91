# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start or repair a lab's nodes, up to containerd and its images. start.py has the steps that need an API server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lab.cluster.description import Description
from lab.cluster.node import Node
from lab.cluster.waiting import wait_until
from lab.images.archive import Archive, keep, kept_archives
from lab.images.imports import has_imported, import_into, mark_imported
from lab.images.store import clone_store, ensure_store
from lab.images.system import ensure_system_archives
from lab.machines import network
from lab.machines.cgroup import freeze
from lab.machines.machine import KUBELET_MASKS, Machine, describe_machine, node_machine
from lab.parallel import in_parallel
from lab.paths import Cache, State
from lab.programs.ensure import Programs
from lab.progress import Progress

_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
}


class NodeStarter:
    """The nodes' part of one run of `up`."""

    def __init__(
        self,
        state: State,
        description: Description,
        programs: Programs,
        nodes: Sequence[Node],
        *,
        cache: Cache,
        progress: Progress,
    ) -> None:
        self._state, self._description, self._programs = state, description, programs
        self._nodes, self._cache, self._progress = nodes, cache, progress
        self._addresses = description.addresses
        self._runtime_socket = description.distribution.runtime_socket
        self._program_bind = (cache.programs, str(cache.programs))
        self._store: Path | None = None
        self._in_store: list[Archive] = []

    def start(self, archives: list[Archive], control_plane_pid: int, *, relink: bool) -> set[str]:
        """Start the nodes. Return the names of those that did not run before."""
        if not self._nodes:
            return set()
        system = ensure_system_archives(self._cache, self._programs, self._progress)
        stored = [keep(archive, self._state.archives) for archive in archives]
        if any(not node.paths.containerd.exists() for node in self._nodes):
            self._in_store = [*system, *stored]
            self._store = ensure_store(self._cache, self._programs, self._in_store, self._nodes[0].runc, self._progress)
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
                binds=[self._program_bind, *node.binds()],
                sysctls=_SYSCTLS,
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
        others = [other.number for other in self._nodes if other.number != node.number]
        network.run_ip(network.pod_route_script(self._addresses, others), pid=pid)
        network.run_nft(network.masquerade_rules(self._addresses, node.number), pid=pid)

    def _import_missing(self, machine: Machine, pid: int) -> None:
        socket = Path(f"/proc/{pid}/root{self._runtime_socket}")
        wait_until("containerd's socket", socket.exists, machine)
        for archive in kept_archives(self._description.images, self._state.archives):
            if not has_imported(machine, archive):
                self._progress(f"importing {archive.reference} into {machine.name}")
                import_into(machine, archive, self._programs.node("ctr"), self._runtime_socket)
