# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of migrations: the number in each phase, and the end of each. Built at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.api.objects.migration import FAILED, PENDING, RUNNING, SCHEDULED, SCHEDULING, SUCCEEDED, UNSET

IN_PHASE = {
    "unset": (UNSET,),
    "pending": (PENDING,),
    "scheduling": (SCHEDULING, SCHEDULED),
    "running": (RUNNING,),
}
"""Phases by the name that a metric has for them. The other phases are short."""
ENDS = {"succeeded": SUCCEEDED, "failed": FAILED}


class _Meta(msgspec.Struct, gc=False):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    vmi_name: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Migration(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Migration)


class Migrations(Collector):
    """A collector for prometheus_client. Safe to call in another thread."""

    def __init__(self, migrations: Callable[[], Iterable[bytes]], is_leader: Callable[[], bool]) -> None:
        """migrations: returns a copy of the cached objects."""
        self._migrations, self._is_leader = migrations, is_leader

    def describe(self) -> Iterator[Metric]:
        """Declare nothing: otherwise the registry would read every migration to get the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics on the leader only: other replicas would count each migration again."""
        if self._is_leader():
            yield from _metrics(list(read_migrations(self._migrations())))


def _metrics(migrations: list[_Migration]) -> Iterator[Metric]:
    count = Counter(migration.status.phase for migration in migrations)
    for label, phases in IN_PHASE.items():
        name = f"kubevirt_vmi_migrations_in_{label}_phase"
        yield GaugeMetricFamily(
            name, f"Number of current {label} migrations.", value=sum(count[phase] for phase in phases)
        )
    for label, phase in ENDS.items():
        ended = GaugeMetricFamily(
            f"kubevirt_vmi_migration_{label}",
            f"Migrations that {label}, of those kept.",
            labels=("vmi", "vmim", "namespace"),
        )
        for migration in migrations:
            if migration.status.phase == phase:
                ended.add_metric((migration.spec.vmi_name, migration.metadata.name, migration.metadata.namespace), 1)
        yield ended


def read_migrations(cached: Iterable[bytes]) -> Iterator[_Migration]:
    """Decode the migrations that can be decoded."""
    for raw in cached:
        try:
            yield _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeError):  # the migration controller reports that
            continue
