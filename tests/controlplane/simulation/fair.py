# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fair round: every process and node acts once, without faults. Used at the end of a run, and for stories."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, collect_garbage, collect_pods, evict
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.store import Store


def fair_round(
    store: Store,
    processes: Iterable[Process],
    nodes: Iterable[Node],
    *,
    carry: Callable[[Process], object],
    schedule: Callable[[], object],
) -> bool:
    """Run one round; return whether anything happened. carry: carries out the first waiting call of a process."""
    before, moved = store.version, False
    for process in processes:
        moved = _process_round(process, carry) or moved
    for node in nodes:
        moved = _node_round(node) or moved
    schedule()
    while collect_garbage(store) or evict(store, OUT_OF_SERVICE) or collect_pods(store):
        moved = True
    return moved or before != store.version


def _process_round(process: Process, carry: Callable[[Process], object]) -> bool:
    moved = process.wake()
    for cache in process.caches:
        while cache.is_behind:
            cache.advance()
            moved = True
        cache.bookmark()
    if isinstance(process, Handler):
        for step in process.sessions.steps():
            step()
            moved = True
    for name in process.work:
        while process.begin(name):
            moved = True
    while process.passes:
        carry(process)
    return moved


def _node_round(node: Node) -> bool:
    moved = False
    for key, uid in node.kubelet_steps():
        node.kubelet_step(key, uid)
        moved = True
    for launcher in node.host_steps():
        node.host_step(launcher)
        moved = True
    return moved
