# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of when each VMI's last migration began and ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from controlplane.api.timestamps import read_timestamp
from controlplane.virt_controller.metrics.migrations import read_migrations

NO_NAME = "<none>"
"""Name of a migration that does not exist any more, as in KubeVirt."""
_LABELS = ("node", "namespace", "name", "migration_name")


class MigrationState(msgspec.Struct, rename="camel", gc=False):
    """The fields of a VMI's migrationState that the metrics need."""

    migration_uid: str = ""
    start_timestamp: str | None = None
    end_timestamp: str | None = None
    completed: bool = False
    failed: bool = False


class InstanceMigration(NamedTuple):
    """A VMI (node, namespace, name) and its last migration."""

    instance: tuple[str, str, str]
    state: MigrationState


def migration_times(migrated: list[InstanceMigration], migrations: Callable[[], Iterable[bytes]]) -> Iterator[Metric]:
    """Yield the metrics. Migrations are read only if a VMI has one to name."""
    starts = GaugeMetricFamily(
        "kubevirt_vmi_migration_start_time_seconds", "The time at which the migration started.", labels=_LABELS
    )
    ends = GaugeMetricFamily(
        "kubevirt_vmi_migration_end_time_seconds",
        "The time at which the migration ended.",
        labels=(*_LABELS, "status"),
    )
    metadata = (migration.metadata for migration in read_migrations(migrations())) if migrated else ()
    names = {meta.uid: meta.name for meta in metadata}
    for instance, migration in migrated:
        labels = (*instance, names.get(migration.migration_uid, NO_NAME))
        if (seconds := read_timestamp(migration.start_timestamp)) is not None:
            starts.add_metric(labels, seconds)
        if (seconds := read_timestamp(migration.end_timestamp)) is not None:
            ends.add_metric((*labels, _outcome(migration)), seconds)
    yield from (starts, ends)


def _outcome(migration: MigrationState) -> str:
    if not migration.completed:
        return ""
    return "failed" if migration.failed else "succeeded"
