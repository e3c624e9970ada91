# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.lease import Lease
from controlplane.api.objects.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: Node
    lease: Lease | None
    """None: there is none."""
    unrenewed_for: float
    """Seconds for which this leader has watched the Lease, or its absence, without a renewal."""

    @property
    def takes_machines(self) -> bool:
        return self.node.metadata.labels.get(SCHEDULABLE) == "true"


@dataclass(frozen=True, slots=True)
class MarkUnschedulable:
    """Say that no new machines can be scheduled to the node."""

    because: str


Action = MarkUnschedulable
