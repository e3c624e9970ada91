# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted on purpose that make work late, early, or twice. Those that make it wrong are in planted."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.resources import Key
from controlplane.engine.work_queue import WorkQueue


def alarm_forgotten(
    queue: WorkQueue, key: Key, now: float, *, failed: bool, requeue_after: float | None = None
) -> None:
    """Finish a turn, and come back only when it failed."""
    _finish(queue, key, now, failed=failed, requeue_after=requeue_after if failed else None)


def put_off(queue: WorkQueue, key: Key, now: float, *, after: float = 0.0) -> None:
    """Let a change wait for the alarm that is set already."""
    if key not in queue._due:
        _add(queue, key, now, after=after)


def never_sent(*_unused: Any) -> bool:
    """Forget which deletes were sent."""
    return False


_finish, _add = WorkQueue.finish, WorkQueue.add
