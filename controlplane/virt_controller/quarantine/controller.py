# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quarantine controller: how it is built, and what enqueues its only key."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects.resources import KUBEVIRT, NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_controller.controller import Controller, Enqueue, Watch
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.quarantine.reconciler import ALL_NODES, QuarantineReconciler


def build(deps: Dependencies) -> QuarantineReconciler:
    return QuarantineReconciler(
        nodes=deps.caches[NODE],
        vmis=deps.caches[VIRTUAL_MACHINE_INSTANCE],
        api=deps.api,
        clock=deps.clock,
        events=deps.events,
        configuration=deps.configuration,
    )


def _all_nodes(_key: Key, _before: bytes | None, _after: bytes | None) -> Iterator[Key]:
    yield ALL_NODES


def sources(_deps: Dependencies, reconciler: QuarantineReconciler, enqueue: Enqueue) -> None:
    """The reconciler subscribes to Nodes and VMIs itself, and enqueues when a decision may change."""
    reconciler.enqueue_by(enqueue)


CONTROLLER = Controller(
    name="quarantine",
    build=build,
    watches=lambda _deps, _reconciler: (Watch(KUBEVIRT, _all_nodes),),
    sources=sources,
    begin=QuarantineReconciler.begin,
)
