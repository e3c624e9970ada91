# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Pods are spread over nodes and zones, as in Kubernetes. Types only."""

from __future__ import annotations

from typing import Annotated

from controlplane.api.objects.meta import Node
from controlplane.api.objects.selector import LabelSelector
from controlplane.api.schema.bounds import bounded, one_of

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
Number = Annotated[int, bounded(minimum=1, maximum=2**31 - 1)]
LabelKey = Annotated[str, bounded(max_length=317, required=True)]


class TopologySpreadConstraint(Node, frozen=True, kw_only=True):
    """How evenly the machines' Pods are spread; see Kubernetes' Pod."""

    max_skew: Number
    """How many more of them a domain may have than another one."""
    topology_key: LabelKey
    """Nodes with the same value of this label are one domain."""
    when_unsatisfiable: Annotated[str, one_of(DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, required=True)]
    """DoNotSchedule: the machine waits. ScheduleAnyway: it gets the best node that there is."""
    label_selector: LabelSelector | None = None
    """Which Pods are counted, by labels; they have those of their machines."""
    match_label_keys: Annotated[tuple[LabelKey, ...], bounded(max_items=256)] = ()
    """Labels of which the counted Pods must have the same values as this one."""
    min_domains: Number | None = None
    """Fewest domains; with fewer, none counts as the one with the fewest Pods. With DoNotSchedule."""
    node_affinity_policy: Annotated[str, one_of("Honor", "Ignore")] = ""
    """Honor (default): only nodes count that the machine's node selector and affinity allow. Ignore: all do."""
    node_taints_policy: Annotated[str, one_of("Honor", "Ignore")] = ""
    """Honor: nodes with taints that the machine does not tolerate do not count. Ignore (default): they do."""
