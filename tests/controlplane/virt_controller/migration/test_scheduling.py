# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which migration starts next, as a table."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.virt_controller.migration.scheduling import (
    QueueEntry,
    blocks_others,
    may_begin,
    next_to_begin,
    should_yield,
)
from tests.controlplane.virt_controller.migration.worlds import a_migration

CRITICAL, USER, TIDYING = "system-critical", "user-triggered", "system-maintenance"


def one(
    name: str, phase: str = "Pending", *, node: str = "node-1", priority: str | None = None, age: int = 0, **facts: bool
) -> QueueEntry:
    created = f"2026-01-01T00:00:{59 - age:02}Z"
    spec = {} if priority is None else {"priority": priority}
    return QueueEntry(a_migration(phase, uid=name, name=name, created=created, spec=spec), node, **facts)


def of(namespace: str, entry: QueueEntry) -> QueueEntry:
    """Move it to another namespace."""
    migration = entry.migration
    meta = msgspec.structs.replace(migration.metadata, namespace=namespace)
    return replace(entry, migration=msgspec.structs.replace(migration, metadata=meta))


TABLE: dict[str, tuple[list[QueueEntry], int, int, str]] = {
    "all that fit": ([one("a"), one("b")], 5, 2, "ab"),
    "the oldest first": ([one("a", age=1), one("b", age=9)], 1, 2, "b"),
    "of the same age: by UID": ([one("b"), one("a")], 1, 2, "a"),
    "by priority first": (
        [one("n", age=9), one("t", priority=TIDYING), one("u", priority=USER), one("c", priority=CRITICAL)],
        4,
        4,
        "cutn",
    ),
    "at most the cluster's limit": ([one("a", "Running"), one("b", "Scheduling"), one("c")], 2, 2, ""),
    "at most a node's limit; other nodes go on": ([one("a", "Running"), one("b"), one("c", node="node-2")], 5, 1, "c"),
    "finished ones do not count": ([one("b")], 1, 1, "b"),
    "one whose Pod exists counts in any phase": ([one("a", has_pod=True), one("b", age=0)], 1, 5, ""),
    "one that cannot begin blocks no other": ([one("a", age=9, can_begin=False), one("b")], 1, 1, "b"),
    "one with an unknown instance waits": ([one("a", node="")], 5, 2, ""),
    "namespaces take turns": (
        [*(one(name, age=9) for name in "abc"), of("y", one("p", age=1)), of("y", one("q")), of("z", one("x"))],
        6,
        9,
        "apxbqc",
    ),
    "a namespace with a running one is second": (
        [one("a", "Running"), one("b", age=9), of("y", one("p"))],
        3,
        9,
        "pb",
    ),
    "one that cannot begin takes no turn": (
        [one("a", age=9, can_begin=False), one("b", age=8), of("y", one("p"))],
        2,
        9,
        "bp",
    ),
    "by priority before turns": ([one("a", "Running"), one("b", priority=USER), of("y", one("p"))], 3, 9, "bp"),
    "new ones wait like those that are pending": ([one("a", "")], 5, 2, "a"),
}


@pytest.mark.parametrize("case", TABLE)
def test_which_migrations_start_next(case: str) -> None:
    entries, cluster, node, expected = TABLE[case]
    settings = MigrationConfiguration(
        parallel_migrations_per_cluster=cluster, parallel_outbound_migrations_per_node=node
    )
    started = "".join(entry.migration.metadata.uid for entry in next_to_begin(entries, settings))
    assert started == expected
    for entry in entries:
        uid = entry.migration.metadata.uid
        if entry.can_begin and entry.is_waiting:
            assert may_begin(uid, entries, settings) == (uid in expected)


def test_a_refused_migration_may_retry_on_its_own_reconcile() -> None:
    entries = [one("a", can_begin=False), one("b", "Running")]
    assert may_begin("a", entries, MigrationConfiguration())
    assert next_to_begin(entries, MigrationConfiguration()) == []


@pytest.mark.parametrize(
    ("others", "cluster", "node", "expected"),
    [
        pytest.param([], 1, 1, False, id="none waits"),
        pytest.param([one("b")], 1, 5, True, id="one waits for a place in the cluster"),
        pytest.param([one("b")], 5, 1, True, id="one waits for a place of the node"),
        pytest.param([one("b", node="node-2")], 5, 1, False, id="one may begin"),
        pytest.param([one("b", "Running"), one("c")], 5, 1, False, id="two are before it"),
        pytest.param([one("b", can_begin=False)], 1, 1, False, id="the other cannot begin"),
    ],
)
def test_which_migrations_block_others(others: list[QueueEntry], cluster: int, node: int, expected: bool) -> None:
    settings = MigrationConfiguration(
        parallel_migrations_per_cluster=cluster, parallel_outbound_migrations_per_node=node
    )
    for entries in ([one("a", "Scheduling"), *others], [*others, one("a", "Scheduling")]):
        assert blocks_others("a", entries, settings) is expected


TWO = [one("b", "Running")]
"""The other migration in the namespace of `a`."""


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([*TWO, one("c")], False, id="its own waits"),
        pytest.param([*TWO, of("y", one("p"))], True, id="one waits that has none"),
        pytest.param([of("y", one("p"))], False, id="it is all that its namespace has"),
        pytest.param([*TWO, of("y", one("p", can_begin=False))], False, id="one waits that cannot begin"),
        pytest.param([*TWO, of("y", one("p")), of("y", one("q", "Running"))], False, id="one that would have as many"),
        pytest.param([*TWO, of("y", one("p", priority=CRITICAL))], True, id="a more important one waits"),
        pytest.param([one("b", "Scheduling", age=9), of("y", one("p"))], False, id="an older one gives its place"),
        pytest.param([one("b", "Scheduling"), of("y", one("p"))], True, id="it is the oldest"),
        pytest.param(
            [*TWO, *(of("z", one(name, "Scheduling")) for name in "qrs"), of("y", one("p"))],
            False,
            id="another namespace has more",
        ),
    ],
)
def test_which_migration_yields_to_a_namespace_with_fewer(others: list[QueueEntry], expected: bool) -> None:
    settings = MigrationConfiguration(
        parallel_migrations_per_cluster=1 + sum(not other.is_waiting for other in others),
        parallel_outbound_migrations_per_node=9,
    )
    assert should_yield("a", [*others, one("a", "Scheduling", age=5)], settings) is expected


def test_a_drain_yields_at_most_one_slot_and_only_to_equal_priority() -> None:
    settings = MigrationConfiguration(parallel_migrations_per_cluster=3, parallel_outbound_migrations_per_node=9)
    drain = [one(name, "Scheduling", priority=CRITICAL) for name in "abc"]
    assert not any(should_yield(name, [*drain, of("y", one("p"))], settings) for name in "abc")
    heirs = [of(name, one(name * 2, priority=CRITICAL)) for name in "xyz"]
    assert [name for name in "abc" if should_yield(name, [*drain, *heirs], settings)] == ["a"]


@pytest.mark.parametrize("phase", ["Scheduled", "Running"])
def test_a_migration_with_a_ready_pod_keeps_its_slot(phase: str) -> None:
    settings = MigrationConfiguration(parallel_migrations_per_cluster=2, parallel_outbound_migrations_per_node=9)
    assert not should_yield("a", [one("a", phase), *TWO, of("y", one("p"))], settings)
