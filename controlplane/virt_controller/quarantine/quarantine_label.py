# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The label that keeps machines from a Node: until when, and whose word it is. Pure.

Ours is a time, which ends it. Any other value is a person's: it stays until they take it off.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.node import Node

_FORM = "%Y%m%dT%H%M%SZ"
"""A time as a label's value can have it."""


def render_label(until: float) -> str:
    """Spell seconds since the epoch, e.g. 20260131T120000Z."""
    return datetime.fromtimestamp(int(until), tz=UTC).strftime(_FORM)


def parse_label(value: str) -> float | None:
    """Read a mark of ours as seconds since the epoch; None when it is somebody else's."""
    try:
        found = datetime.strptime(value, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
    return found.timestamp() if found.strftime(_FORM) == value else None


def label_of(node: Node) -> str | None:
    """Return what keeps machines from a Node; None when nothing does."""
    return node.metadata.labels.get(QUARANTINED)
