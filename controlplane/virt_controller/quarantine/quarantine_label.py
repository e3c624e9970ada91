# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The label that quarantines a Node, and who wrote it. Pure.

A time is virt-controller's: the quarantine ends then. Any other value is an administrator's: it stays.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.node import Node

_FORM = "%Y%m%dT%H%M%SZ"
"""A time, as a label's value."""


def render_label(until: float) -> str:
    """Format seconds since the epoch, e.g. 20260131T120000Z."""
    return datetime.fromtimestamp(int(until), tz=UTC).strftime(_FORM)


def parse_label(value: str) -> float | None:
    """Parse a time that virt-controller wrote, as seconds since the epoch; None for any other value."""
    try:
        parsed = datetime.strptime(value, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
    return parsed.timestamp() if parsed.strftime(_FORM) == value else None


def label_of(node: Node) -> str | None:
    """Return the label's value; None if there is no label."""
    return node.metadata.labels.get(QUARANTINED)
