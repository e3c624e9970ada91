# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a migration, in the status of the instance and of the migration, and its settings. Types only.

On the instance, the two nodes and virt-controller coordinate through it; docs/adr/0016 says who writes which field, and
where the guest continues. Names are upstream's, except sourcePodUID and targetPodUID.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from controlplane.api.objects.meta import Node, Quantity
from controlplane.api.schema.bounds import LabelKey, bounded

_Name = Annotated[str, bounded(max_length=253)]
_Word = Annotated[str, bounded(max_length=64)]
_Address = Annotated[str, bounded("an address", pattern="[!-~]+", max_length=45)]
_Text = Annotated[str, bounded(max_length=1024)]
_Port = Annotated[int, bounded(minimum=0, maximum=65535)]

PRE_COPY, STOPPED = "PreCopy", "Paused"
"""Modes, upstream's words."""
PAUSED_FOR_MIGRATION_MESSAGE = "VMI was paused so that its migration can end"
"""Message of the condition Paused of a guest that is stopped to be sent."""
TUNNEL = 0
"""What the target's one port carries, in targetDirectMigrationNodePorts: all of a migration's connections."""


class MigrationConfiguration(Node, frozen=True, kw_only=True):
    """Settings of migrations."""

    parallel_migrations_per_cluster: Annotated[int, bounded(minimum=0)] = 5
    """How many migrations are under way at once; 0 is none."""
    parallel_outbound_migrations_per_node: Annotated[int, bounded(minimum=0)] = 2
    """How many of them leave one node; 0 is none."""
    bandwidth_per_migration: Quantity = 0
    """Bytes in a second that one migration sends at most, in whole MiB and at least one; 0 is no bound."""
    completion_timeout_per_gib: Annotated[int, bounded(minimum=0)] = msgspec.field(
        default=150, name="completionTimeoutPerGiB"
    )
    """Seconds that a migration may take for each GiB of memory and local disks; 0 is no bound."""
    progress_timeout: Annotated[int, bounded(minimum=0)] = 150
    """Seconds without progress after which it is given up; 0 is no bound."""
    node_drain_taint_key: LabelKey = ""
    """Key of the taint (effect NoSchedule) that has all machines of a node migrated; kubevirt.io/drain if not set."""
    allow_auto_converge: bool = False
    """Slow a guest down that writes its memory faster than it is sent."""
    allow_workload_disruption: bool = False
    """Pause a guest that was not sent in its time, so that the rest can be; then as long again is left for that."""


class MigrationState(Node, frozen=True, kw_only=True):
    """One migration of an instance, the current or the last one."""

    migration_uid: _Word = ""
    """UID of the VirtualMachineInstanceMigration."""
    source_node: _Name = ""
    """Node that it leaves."""
    target_node: _Name = ""
    """Node that it goes to."""
    source_pod: _Name = ""
    """Launcher Pod that it leaves."""
    target_pod: _Name = ""
    """Launcher Pod that it goes to."""
    source_pod_uid: _Word = msgspec.field(default="", name="sourcePodUID")
    """UID of sourcePod."""
    target_pod_uid: _Word = msgspec.field(default="", name="targetPodUID")
    """UID of targetPod."""
    target_node_address: _Address = ""
    """Where the target's virt-handler listens for the source's."""
    target_direct_migration_node_ports: dict[str, _Port] = msgspec.field(default_factory=dict)
    """The port of targetNodeAddress, and 0: one port carries all."""
    start_timestamp: _Word | None = None
    """When the guest's memory began to be sent. Nothing is sent before this is written."""
    end_timestamp: _Word | None = None
    """When it was over."""
    target_node_domain_detected: bool = False
    """The target has a domain of the guest."""
    target_node_domain_ready_timestamp: _Word | None = None
    """When the guest was seen to go on at the target: nothing of it is left at the source."""
    completed: bool = False
    """It is over. Unless it has failed, the guest at the source is gone for good, and the target's is the machine."""
    failed: bool = False
    """It is over, and the guest stays where it was."""
    failure_reason: _Text = ""
    """Why it failed."""
    abort_requested: bool = False
    """Somebody wants it to end: its migration is deleted."""
    abort_status: _Word = ""
    """Aborting, Succeeded or Failed."""
    mode: _Word = ""
    """PreCopy: the guest runs while it is sent. Paused: it was stopped so that it can be."""
    migration_policy_name: _Name = ""
    """MigrationPolicy that it goes by."""
    migration_configuration: MigrationConfiguration | None = None
    """Settings that it goes by."""

    @property
    def is_over(self) -> bool:
        return self.completed or self.failed

    @property
    def has_moved(self) -> bool:
        """Tell whether the source has reported that its guest is gone for good."""
        return self.completed and not self.failed

    @property
    def is_under_way(self) -> bool:
        """Tell whether a migration has begun and has not ended."""
        return bool(self.migration_uid) and not self.is_over
