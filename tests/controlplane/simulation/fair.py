# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fair round: everybody who can do something does it once, nothing is lost. For the end of a run, and for stories."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.store import Store


def fair_round(
    store: Store,
    controller: Controller,
    nodes: Iterable[Node],
    *,
    carry: Callable[[], object],
    schedule: Callable[[], object],
) -> bool:
    """Run one round; tell whether anything was done. carry: let the controller's first waiting call happen."""
    before = store.version
    moved = _deliver(controller)
    for name in ("vm", "vmi"):
        while controller.begin(name):
            moved = True
    while controller.passes:
        carry()
    for node in nodes:
        for key, uid in node.kubelet_steps():
            node.kubelet_step(key, uid)
            moved = True
        for uid in node.handler_steps():
            node.handler_step(uid)
            moved = True
    schedule()
    while store.collect_garbage():
        moved = True
    return moved or before != store.version


def _deliver(controller: Controller) -> bool:
    moved = False
    for cache in controller.caches.values():
        while cache.is_behind:
            cache.advance()
            moved = True
    return moved
