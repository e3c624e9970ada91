# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Pod's affinity, as in Kubernetes. Types only.

A machine's spec has it as plain values, which are copied to the Pod unchanged. Admission uses these types to check it.
"""

from __future__ import annotations

from typing import Annotated

from controlplane.api.objects.meta import Node
from controlplane.api.objects.selector import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, LabelSelector
from controlplane.api.schema.bounds import DnsLabel, bounded, one_of

GREATER, LESS = "Gt", "Lt"

Key = Annotated[str, bounded(max_length=317, required=True)]
Weight = Annotated[int, bounded(minimum=1, maximum=100)]


class NodeRequirement(Node, frozen=True, kw_only=True):
    """What one label, or field, of a node must be."""

    key: Key
    """The label."""
    operator: Annotated[str, one_of(IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS, required=True)]
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: tuple[Annotated[str, bounded(max_length=253)], ...] = ()
    """What is meant; with Gt and Lt one whole number."""


class NodeSelectorTerm(Node, frozen=True, kw_only=True):
    """All of it must be met."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()


class NodeSelector(Node, frozen=True, kw_only=True):
    """One of its terms must be met."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class PreferredNodes(Node, frozen=True, kw_only=True):
    """Which nodes are better than others, and by how much."""

    weight: Weight
    preference: NodeSelectorTerm


class NodeAffinity(Node, frozen=True, kw_only=True):
    """On which nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodes, ...] = ()


class PodTerm(Node, frozen=True, kw_only=True):
    """Which Pods, and how near."""

    topology_key: Key
    label_selector: LabelSelector | None = None
    namespaces: tuple[DnsLabel, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[Key, ...] = ()
    mismatch_label_keys: tuple[Key, ...] = ()


class PreferredPods(Node, frozen=True, kw_only=True):
    """Which Pods it is better to be near, or far from, and by how much."""

    weight: Weight
    pod_affinity_term: PodTerm


class PodAffinity(Node, frozen=True, kw_only=True):
    """Near which Pods, or far from which."""

    required_during_scheduling_ignored_during_execution: tuple[PodTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPods, ...] = ()


class Affinity(Node, frozen=True, kw_only=True):
    """Where a Pod is scheduled."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
