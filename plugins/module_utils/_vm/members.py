# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a replica set or pool."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from . import kinds
from .kinds import Kind

Object = dict[str, Any]


def members(api: Api, obj: Object, namespace: str, kind: Kind = kinds.REPLICA_SET) -> list[Object]:
    """Return what a set owns: instances, or a pool's machines."""
    selector = (obj.get("status") or {}).get("labelSelector")
    uid = obj["metadata"].get("uid")
    return [
        member
        for member in api.list(member_kind(kind).resource(namespace), labels=selector)
        if any(owner.get("uid") == uid for owner in member["metadata"].get("ownerReferences") or ())
    ]


def member_kind(kind: Kind) -> Kind:
    """Return the kind of the members of a set."""
    return kinds.VM if kind is kinds.POOL else kinds.VMI
