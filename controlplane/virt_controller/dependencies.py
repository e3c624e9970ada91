# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dependencies of controllers: caches, API, clock, Events, settings, and state that several of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.engine.ports import Api, Cache, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.hotplug.cpu import cpu_migration_reason
from controlplane.virt_controller.hotplug.memory import memory_migration_reason
from controlplane.virt_controller.migration.unfinished_migrations import UnfinishedMigrations
from controlplane.virt_controller.reporting.events import Events
from controlplane.virt_controller.settings import Settings
from controlplane.virt_controller.storage.claims import ReadClaims, no_claims
from controlplane.virt_controller.storage.data_volumes import ReadDataVolumes, no_data_volumes
from controlplane.virt_controller.workload_update.candidates import CandidateCache


class Signal:
    """An event outside the caches. It calls its subscribers with its arguments."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[..., None]] = []

    def subscribe(self, callback: Callable[..., None]) -> None:
        self._callbacks.append(callback)

    def __call__(self, *arguments: Any) -> None:
        for callback in self._callbacks:
            callback(*arguments)


async def no_eviction(pod: Key, _uid: str) -> None:
    raise AssertionError(f"no eviction API to evict Pod {pod}")


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    caches: Mapping[Resource, ReadYourWritesCache]
    """Caches of the kinds that controllers write."""
    read_only: Mapping[Resource, Cache]
    """Caches of the kinds that controllers only read, e.g. Leases and claims."""
    api: Api
    clock: Clock
    events: Events
    settings: Settings
    configuration: Callable[[], KubeVirtConfiguration]
    """The current configuration of the KubeVirt object."""
    quarantined: Callable[[], frozenset[str]] = frozenset
    """Names of the nodes that are in quarantine now."""
    node_labels: Callable[[str], Mapping[str, str]]
    """Labels of a node, by its name."""
    read_claims: ReadClaims = no_claims
    read_data_volumes: ReadDataVolumes = no_data_volumes
    evict: Callable[[Key, str], Awaitable[None]] = no_eviction
    """Requests the eviction of a Pod, by key and UID. Raises ApiError."""
    pod_warnings: Signal = field(default_factory=Signal)
    """A Warning Event about a Pod, as raw JSON."""
    data_volume_support: Signal = field(default_factory=Signal)
    """The cluster begins or ceases to serve DataVolumes, or the first list of them is complete. No arguments."""

    def cache(self, resource: Resource) -> Cache:
        """Return the cache of a kind, whether controllers write it or not."""
        return self.read_only[resource] if resource in self.read_only else self.caches[resource]

    @cached_property
    def unfinished(self) -> UnfinishedMigrations:
        """One instance for all controllers: it stores refused migrations, which do not count against limits."""
        pods = self.caches[POD]
        vmis, migrations = self.caches[VIRTUAL_MACHINE_INSTANCE], self.caches[VIRTUAL_MACHINE_INSTANCE_MIGRATION]
        return UnfinishedMigrations(migrations, vmis, lambda pod: pods.get(pod) is not None)

    @cached_property
    def candidates(self) -> CandidateCache:
        """One instance for workload updates and for the metric of outdated machines."""
        return CandidateCache(
            self.caches[VIRTUAL_MACHINE_INSTANCE],
            self.caches[POD],
            self.settings.launcher_image,
            reasons=(cpu_migration_reason, memory_migration_reason),
        )
