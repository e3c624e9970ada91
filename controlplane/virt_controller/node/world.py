# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the node controller's decisions, and its action. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.lease import Lease
from controlplane.api.objects.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    node: Node
    lease: Lease | None
    """None: the Lease does not exist."""
    unrenewed_for: float
    """Seconds for which this leader has observed no renewal, or no Lease."""

    @property
    def takes_machines(self) -> bool:
        return self.node.metadata.labels.get(SCHEDULABLE) == "true"


@dataclass(frozen=True, slots=True)
class MarkUnschedulable:
    """Set the node's label so that no new machines are scheduled there."""

    because: str


Action = MarkUnschedulable
