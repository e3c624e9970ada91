# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a migration is, as libvirt's job statistics say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a migration is, in bytes of memory and disks together."""

    total: int = 0
    remaining: int = 0
    sent: int = 0
    dirtied_per_second: int = 0
    """Bytes of memory that the guest changes."""
    memory_per_second: int = 0
    """Bytes of memory that are sent."""


def read_progress(stats: Mapping[str, object]) -> Progress:
    """Parse libvirt's job statistics. What is not a number counts as 0: the peer may be a tenant's."""

    def number(name: str) -> int:
        value = stats.get(name)
        return max(0, value) if isinstance(value, int) else 0

    return Progress(
        total=number("data_total"),
        remaining=number("data_remaining"),
        sent=number("data_processed"),
        dirtied_per_second=number("memory_dirty_rate") * number("memory_page_size"),
        memory_per_second=number("memory_bps"),
    )
