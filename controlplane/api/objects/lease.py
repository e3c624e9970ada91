# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Lease that a node's virt-handler renews as its heartbeat. Types only."""

from __future__ import annotations

from typing import NamedTuple

from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.meta import ObjectMeta

_PREFIX = "virt-handler-"


def lease_name(node: str) -> str:
    return f"{_PREFIX}{node}"


def node_of(lease: str) -> str | None:
    """Return the node of a virt-handler's Lease; None for another Lease."""
    return lease.removeprefix(_PREFIX) if lease.startswith(_PREFIX) else None


class Renewal(NamedTuple):
    """What differs from one renewal to the next. The time in it is compared to nothing but itself."""

    uid: str
    holder: str
    time: str


class LeaseSpec(Struct, frozen=True, kw_only=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str = ""


class Lease(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

    @property
    def renewal(self) -> Renewal:
        return Renewal(self.metadata.uid, self.spec.holder_identity, self.spec.renew_time)
