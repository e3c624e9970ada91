# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler's metrics: domain starts, deprecated boards, and the progress of outgoing migrations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from prometheus_client import Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controlplane.api.objects.resources import Key
from controlplane.hypervisor.progress import Progress
from controlplane.process.metrics import Metrics

_LABELS = ("node", "namespace", "name")
_MIGRATION_GAUGES: tuple[tuple[str, str, Callable[[Progress], int]], ...] = (
    ("data_processed_bytes", "Bytes of a migrating guest that were sent", lambda progress: progress.sent),
    (
        "data_remaining_bytes",
        "Bytes of a migrating guest that remain to be sent",
        lambda progress: progress.remaining,
    ),
    (
        "dirty_memory_rate_bytes",
        "Memory that a migrating guest changes in a second",
        lambda progress: progress.dirtied_per_second,
    ),
    (
        "memory_transfer_rate_bytes",
        "Memory of a migrating guest that is sent in a second",
        lambda progress: progress.memory_per_second,
    ),
)


class HandlerMetrics(Metrics):
    """Reconciles, domain starts, and outgoing migrations."""

    def __init__(self, node: str = "") -> None:
        super().__init__()
        self._node = node
        self._migrations = _Migrations(node)
        self.registry.register(self._migrations)
        self._starts = Histogram(
            "virtops_domain_start_seconds",
            "Defining and starting a domain",
            buckets=(0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 5.0, 20.0),
            registry=self.registry,
        )

    def watch_deprecated_machines(self, machines: Callable[[], Collection[str]]) -> None:
        """Export these boards; machines is called at each scrape, in another thread."""
        self.registry.register(_DeprecatedMachines(self._node, machines))

    def started(self, seconds: float) -> None:
        """Record the duration of a domain's start."""
        self._starts.observe(seconds)

    def progressed(self, key: Key, progress: Progress | None) -> None:
        """Record the progress of a VMI's migration; None: it is over. Fits migration.sender.Progressed."""
        self._migrations.note(key, progress)


class _DeprecatedMachines(Collector):
    """The boards of a node that QEMU will remove."""

    def __init__(self, node: str, machines: Callable[[], Collection[str]]) -> None:
        self._node, self._machines = node, machines

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "kubevirt_node_deprecated_machine_types",
            "Deprecated machine types of a node, as virt-handler finds them",
            labels=("machine_type", "node"),
        )
        for machine in self._machines():
            family.add_metric((machine, self._node), 1.0)
        yield family


class _Migrations(Collector):
    """The metrics of each outgoing migration. `collect` and `note` run in different threads."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._progress: dict[Key, Progress] = {}

    def note(self, key: Key, progress: Progress | None) -> None:
        if progress is None:
            self._progress.pop(key, None)
        else:
            self._progress[key] = progress

    def collect(self) -> Iterator[Metric]:
        migrations = list(self._progress.copy().items())
        total = CounterMetricFamily(
            "kubevirt_vmi_migration_data_bytes",
            "Bytes of a migrating guest, sent and remaining",
            labels=_LABELS,
        )
        for key, progress in migrations:
            total.add_metric((self._node, key.namespace, key.name), progress.total)
        yield total
        for name, text, value in _MIGRATION_GAUGES:
            family = GaugeMetricFamily(f"kubevirt_vmi_migration_{name}", text, labels=_LABELS)
            for key, progress in migrations:
                family.add_metric((self._node, key.namespace, key.name), value(progress))
            yield family
