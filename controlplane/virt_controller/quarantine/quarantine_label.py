# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The label that quarantines a Node, and whether virt-controller wrote it. Pure.

If the value is a time, virt-controller wrote it: the quarantine ends then. An administrator wrote any other value: it
stays.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.node import Node

_TIME_FORMAT = "%Y%m%dT%H%M%SZ"
"""A time, as a label's value."""


def render_label(until: float) -> str:
    """Format seconds since the epoch, e.g. 20260131T120000Z."""
    return datetime.fromtimestamp(int(until), tz=UTC).strftime(_TIME_FORMAT)


def parse_label(value: str) -> float | None:
    """Parse a time that virt-controller wrote, as seconds since the epoch; None for any other value."""
    try:
        parsed = datetime.strptime(value, _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return parsed.timestamp() if parsed.strftime(_TIME_FORMAT) == value else None


def label_of(node: Node) -> str | None:
    """Return the label's value; None if there is no label."""
    return node.metadata.labels.get(QUARANTINED)
