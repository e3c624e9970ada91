# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes workload updates: the KubeVirt's, one of an instance that is candidates, a migration's,
one of what is rolled out.

Many come at once, so they are gathered for a moment.
"""

from __future__ import annotations

from collections.abc import Callable

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.workload_update.candidates import CandidateCache
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout

GATHER_SECONDS = 2.0


def connect_workload_updates(
    *,
    kubevirts: Cache,
    migrations: Cache,
    candidates: CandidateCache,
    rollout: HandlerRollout,
    enqueue: Callable[[Key], None],
) -> None:
    """Subscribe. enqueue: shall come GATHER_SECONDS later."""

    def enqueue_all() -> None:
        for key in list(kubevirts.keys()):
            enqueue(key)

    def on_migration(_key: Key, _before: bytes | None, _after: bytes | None) -> None:
        if candidates():
            enqueue_all()

    candidates.enqueue_by(enqueue_all)
    rollout.enqueue_by(enqueue_all)
    migrations.subscribe(on_migration)
    kubevirts.subscribe(lambda key, _before, _after: enqueue(key))
