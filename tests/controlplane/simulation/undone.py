# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that a process still has in its own view, without a scheduled reconcile: an event or a requeue was lost.

The reconcilers are level-triggered: when a key is neither in progress nor queued, a reconcile must find nothing to do.
Whether decisions are right is checked by the preconditions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Unavailable
from controlplane.engine.plan import WriteStatus

SHORTEST_SECONDS = 0.01
"""A shorter delay does not count."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment by a process's own clock, and the error of that clock."""

    now: float
    monotonic: float
    offset: float


def undone(reconciler: Any, key: Key, due_in: float | None, last: Moment | None) -> str | None:
    """Return the remaining work of a key that is not in progress. due_in: seconds until its reconcile; None: not
    queued.

    last: its last reconcile. Status changes due to time alone since then may wait for the next one.
    """
    try:
        world = reconciler.observe(key)
    except Unavailable:
        return None
    if world is None:
        return None
    plan = reconciler.decide(world)
    steps = [step for step in plan.steps if not isinstance(step, WriteStatus)]
    wanted = plan.requeue_after
    when = "never" if due_in is None else f"in {due_in:.2f} s"
    if wanted is not None and (due_in is None or due_in > max(0.0, wanted) + SHORTEST_SECONDS):
        return f"its reconcile is due in {wanted:.2f} s, and the next reconcile comes {when}"
    if steps and wanted is None:
        return f"{type(steps[0]).__name__} is due ({steps[0].because}), and the next reconcile comes {when}"
    if last is not None:
        times = {"now": last.now, "monotonic": last.monotonic}
        world = replace(world, **{name: then for name, then in times.items() if hasattr(world, name)})
    if (
        getattr(world, "start_blocked_reason", "")
        and reconciler.derive_status(replace(world, start_blocked_reason=""), None) is None
    ):
        return None  # time alone holds a node, and the end of that enqueues all
    if not steps and reconciler.derive_status(world, None) is not None:
        return f"its status differs from what is observed, and the next reconcile comes {when}"
    return None
