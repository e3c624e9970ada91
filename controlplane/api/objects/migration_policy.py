# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MigrationPolicy: settings of migrations for selected instances. They override those of KubeVirt. Types only."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from controlplane.api.objects.meta import Node, Object, Quantity
from controlplane.api.objects.resources import MIGRATION_POLICY, Resource
from controlplane.api.schema.bounds import LabelMap, bounded


class MigrationPolicySelectors(Node, frozen=True, kw_only=True):
    """Which instances a policy is for: those that have all labels of both. Without any label: all."""

    namespace_selector: LabelMap = msgspec.field(default_factory=dict)
    """Labels of the instance's namespace, with their values."""
    virtual_machine_instance_selector: LabelMap = msgspec.field(default_factory=dict)
    """Labels of the instance, with their values."""


class MigrationPolicySpec(Node, frozen=True, kw_only=True):
    """Settings, and for whom. What is not set is as configuration.migrations of the KubeVirt object says."""

    selectors: MigrationPolicySelectors
    """Which instances it is for."""
    bandwidth_per_migration: Quantity | None = None
    """Bytes in a second that one migration sends at most, in whole MiB and at least one; 0 is no bound."""
    completion_timeout_per_gib: Annotated[int, bounded(minimum=0)] | None = msgspec.field(
        default=None, name="completionTimeoutPerGiB"
    )
    """Seconds that a migration may take for each GiB of memory and local disks; 0 is no bound."""
    allow_auto_converge: bool | None = None
    """Slow a guest down that writes its memory faster than it is sent."""
    allow_workload_disruption: bool | None = None
    """Pause a guest that was not sent in its time, so that the rest can be; then as long again is left for that."""


class MigrationPolicyStatus(Node, frozen=True, kw_only=True):
    """A policy has no status."""


class MigrationPolicy(Object, frozen=True, kw_only=True):
    """Settings of migrations for some instances. Of several that are for one, the one with the most labels counts."""

    resource: ClassVar[Resource] = MIGRATION_POLICY

    spec: MigrationPolicySpec
    """Settings, and for whom."""
    status: MigrationPolicyStatus = MigrationPolicyStatus()
    """Nothing."""
