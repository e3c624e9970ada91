# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the quarantine's decisions, and its actions. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.node import Node
from controlplane.virt_controller.quarantine.failure_attribution import AttributedFailure
from controlplane.virt_controller.quarantine.quarantine_label import label_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    """A Node, and what was observed about it."""

    node: Node
    failures: tuple[AttributedFailure, ...] = ()
    quarantined_for: float = 0.0
    """Seconds for which this process has observed its current label."""

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def mark(self) -> str | None:
        return label_of(self.node)

    @property
    def is_fit(self) -> bool:
        """Tell whether the node takes machines, apart from a quarantine."""
        is_labelled = self.node.metadata.labels.get(SCHEDULABLE) == "true"
        return is_labelled and not self.node.spec.unschedulable and not self.node.is_out_of_service


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    nodes: tuple[ObservedNode, ...]
    """By name."""
    now: float
    """Seconds since the epoch."""
    monotonic: float
    leading_for: float
    """Seconds since this process began to lead."""
    namespaces: int
    """How many namespaces have machines."""
    seconds: int
    """How long a quarantine lasts; 0 disables it."""
    withheld: Mapping[str, tuple[AttributedFailure, ...]] = field(default_factory=dict)
    """By node that is not quarantined: the failures for which that was reported."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Quarantine a node until that time."""

    observed: ObservedNode
    until: float
    staying: tuple[str, ...]
    """The other nodes that take machines. The quarantine depends on their number."""
    because: str


@dataclass(frozen=True, slots=True)
class Release:
    """End a quarantine."""

    observed: ObservedNode
    because: str


Action = Quarantine | Release
