# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of KubeVirt."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api import go_duration
from controlplane.api.admission.problem import Problem, excerpt
from controlplane.api.admission.rules import Json, Rules
from controlplane.api.admission.validate.compute import MOST_MAX_GUEST
from controlplane.api.admission.validate.storage import MIN_DISK
from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import BLOCK_BYTES, LEAST_BYTES
from controlplane.api.objects.kubevirt import KubeVirtConfiguration, KubeVirtSpec
from controlplane.api.objects.meta import Quantity

MAX_CONTAINER_DISK = 64 * 2**40
MAX_INTERVAL = 86400.0
"""Seconds between two batches of evictions."""


def _warn(kubevirt: Json) -> Iterator[str]:
    configuration = kubevirt["spec"].get("configuration")
    developer = configuration.get("developerConfiguration") if isinstance(configuration, dict) else None
    if isinstance(developer, dict) and developer.get("featureGates"):
        yield "developerConfiguration.featureGates: no feature gate is known to this version, all are ignored."


def _check(spec: KubeVirtSpec, _unused: KubeVirtConfiguration) -> Iterator[Problem]:
    yield from _check_container_disks(spec)
    rate = spec.configuration.migrations.bandwidth_per_migration
    yield from check_bandwidth(rate, "spec.configuration.migrations.bandwidthPerMigration")
    yield from _check_most_memory(spec.configuration.live_update_configuration.max_guest)
    yield from _check_workload_updates(spec)


def _check_most_memory(amount: Quantity | None) -> Iterator[Problem]:
    """Check the default of memory.maxGuest: every machine without one gets it, and could not start with a bad one."""
    try:
        size = None if amount is None else quantity.to_bytes(amount)
    except quantity.QuantityError:  # fields.py reports it
        return
    if size is not None and not (LEAST_BYTES <= size <= MOST_MAX_GUEST and size % BLOCK_BYTES == 0):
        where = "spec.configuration.liveUpdateConfiguration.maxGuest"
        yield Problem(where, f"{excerpt(amount)} is out of range; must be from 1Gi to 16Ti, in whole 2Mi")


def _check_container_disks(spec: KubeVirtSpec) -> Iterator[Problem]:
    limit = spec.configuration.container_disk_limit
    try:
        size = quantity.to_bytes(limit)
    except quantity.QuantityError:  # fields.py reports it
        return
    if not MIN_DISK <= size <= MAX_CONTAINER_DISK:
        where = "spec.configuration.containerDiskLimit"
        yield Problem(where, f"{excerpt(limit)} is out of range; must be from 1Mi to 64Ti")


def check_bandwidth(rate: Quantity, where: str) -> Iterator[Problem]:
    """Refuse a negative bandwidth. It is a quantity, so its type does not limit it."""
    try:
        size = quantity.to_bytes(rate)
    except quantity.QuantityError:  # fields.py reports it
        return
    if size < 0:
        yield Problem(where, f"{excerpt(rate)} is negative; must be 0 (no bound) or bytes in a second, e.g. 64Mi")


def _check_workload_updates(spec: KubeVirtSpec) -> Iterator[Problem]:
    where, interval = (
        "spec.workloadUpdateStrategy.batchEvictionInterval",
        spec.workload_update_strategy.batch_eviction_interval,
    )
    seconds = go_duration.seconds(interval)
    if interval and (seconds is None or not 0 <= seconds <= MAX_INTERVAL):
        yield Problem(where, f"{excerpt(interval)} is no time from 0s to 24h; write e.g. 1m30s")


RULES = Rules(spec=_check, warn=_warn)
