# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of the queue accepts the real queue, and reports a late one."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.work_queue import WorkQueue
from tests.controlplane.engine.watched_queue import WatchedQueue

A, B, C = Key("default", "a"), Key("default", "b"), Key("other", "c")


def work(queue: WatchedQueue, seed: int) -> None:
    """Add, take and finish keys at random."""
    rng, now, in_progress = random.Random(seed), 0.0, []
    for _unused in range(300):
        now += rng.choice((0.0, 0.01, 5.0))
        queue.add(rng.choice((A, B, C)), now, after=rng.choice((0.0, 0.0, 3.0)))
        key = queue.take(now)
        if key is not None:
            in_progress.append(key)
        if in_progress and rng.random() < 0.7:
            queue.finish(
                in_progress.pop(0), now, failed=rng.random() < 0.3, requeue_after=rng.choice((None, 0.0, 10.0))
            )


@pytest.mark.parametrize("seed", range(5))
def test_the_real_queue_matches_its_model(seed: int) -> None:
    complaints: list[str] = []
    work(WatchedQueue(random.Random(seed), complaints.append), seed)
    assert complaints == []


def test_a_late_key_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = WorkQueue.finish

    def finish_without_requeue(queue: WorkQueue, key: Key, now: float, *, failed: bool, **_unused: object) -> None:
        finish(queue, key, now, failed=failed)

    monkeypatch.setattr(WorkQueue, "finish", finish_without_requeue)
    complaints: list[str] = []
    work(WatchedQueue(random.Random(1), complaints.append), 1)
    assert "and the next turn is due at" in complaints[0]


def test_a_namespace_served_before_others_with_fewer_in_progress_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complaints: list[str] = []
    queue = WatchedQueue(random.Random(1), complaints.append)
    monkeypatch.setattr(queue, "_running", Counter({"other": 9}))
    for key in (A, B, C):
        queue.add(key, 0.0)
    assert [queue.take(0.0) for _unused in range(2)] == [A, B]
    assert complaints == [f"{B} is taken, and another namespace that waits has fewer under way"]
