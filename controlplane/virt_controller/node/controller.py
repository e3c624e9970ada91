# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node controller: how it is built, and what enqueues a Node."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.lease import node_of
from controlplane.api.objects.resources import LEASE, NODE, Key
from controlplane.virt_controller.changes import schedulable_label
from controlplane.virt_controller.controller import Controller, Watch
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.node.decide import duration_seconds
from controlplane.virt_controller.node.reconciler import NodeReconciler, read_lease


def build(deps: Dependencies) -> NodeReconciler:
    return NodeReconciler(
        nodes=deps.caches[NODE],
        leases=deps.read_only[LEASE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        namespace=deps.settings.namespace,
    )


def watches(_deps: Dependencies, _reconciler: NodeReconciler) -> tuple[Watch, ...]:
    return Watch(NODE, _on_node), Watch(LEASE, _on_lease)


def _on_node(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    if schedulable_label(before) != schedulable_label(after):
        yield key


def _on_lease(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
    """Enqueue the node when the Lease's duration changes: its next check was due after the old duration.

    A renewal enqueues nothing. A Lease that is not renewed does not change at all: only the timed check finds it.
    """
    node = node_of(key.name)
    if node is not None and duration_seconds(read_lease(before)) != duration_seconds(read_lease(after)):
        yield Key("", node)


CONTROLLER = Controller(name="node", build=build, watches=watches, begin=NodeReconciler.begin)
