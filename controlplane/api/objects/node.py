# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node: its taints, by which an administrator drains it or declares it out of service. Types only."""

from __future__ import annotations

from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint by which a person says that a node is off: what ran on it may be started elsewhere."""

DRAIN = "kubevirt.io/drain"
"""Taint by which a person wants all machines off a node, if the configuration names no other. Deprecated: an eviction
is the way."""


class Taint(Struct, frozen=True, kw_only=True):
    key: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    """A person has cordoned it."""


class Node(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()

    @property
    def is_out_of_service(self) -> bool:
        return any(taint.key == OUT_OF_SERVICE for taint in self.spec.taints)

    def is_drained(self, configured_key: str) -> bool:
        """Tell whether all machines have to leave. configured_key: see drain_taint."""
        drain = drain_taint(configured_key)
        return any((taint.key, taint.effect) == drain for taint in self.spec.taints)


def drain_taint(configured_key: str) -> tuple[str, str]:
    """Return key and effect of the taint of a drained node. configured_key: "" is DRAIN."""
    return configured_key or DRAIN, "NoSchedule"
