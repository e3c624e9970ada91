# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory a guest has, and can come to have while it runs: bytes. Pure.

The rules are upstream's: a guest of a gibibyte or more, in blocks of two mebibytes.
"""

from __future__ import annotations

from controlplane.api.objects import quantity
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.api.objects.vmi.status import MemoryStatus

BLOCK_BYTES = 2 << 20
"""What a guest takes and gives back at once: a huge page."""
LEAST_BYTES = 1 << 30
"""A smaller guest gets no memory while it runs: its kernel keeps books of all that it can come to have."""


def amount_in_bytes(amount: object) -> int:
    """Read an amount; 0 where there is none, or what is there is none: whoever judges the object says so."""
    try:
        return quantity.to_bytes(amount) if isinstance(amount, str | int | float) else 0
    except ValueError:
        return 0


def guest_bytes(domain: DomainSpec) -> int:
    """Return what the guest is to have: memory.guest, else the request, else the limit; 0 when nothing says."""
    asked = domain.resources
    named = (domain.memory.guest if domain.memory else None, asked.requests.get("memory"), asked.limits.get("memory"))
    return next((quantity.to_bytes(amount) for amount in named if amount is not None), 0)


def most_bytes(domain: DomainSpec) -> int:
    """Return what the guest can come to have while it runs; 0 when it was given no room."""
    most = domain.memory.max_guest if domain.memory else None
    return 0 if most is None else quantity.to_bytes(most)


def room_bytes(domain: DomainSpec) -> int:
    """Return how much more than what it is to have the guest can come to have."""
    return max(0, most_bytes(domain) - guest_bytes(domain))


def spare_bytes(domain: DomainSpec, told: MemoryStatus | None) -> int:
    """Return how much of what a guest can come to have it neither has nor is asked to have."""
    amounts = () if told is None else (told.guest_at_boot, told.guest_requested, told.guest_current)
    held = max(guest_bytes(domain), *map(amount_in_bytes, amounts), 0)
    return max(0, most_bytes(domain) - held)


def refuse_room(guest: int, most: int) -> str:
    """Say why a guest of so much memory cannot be one that can come to have `most`; "" when it can."""
    reasons = {
        f"a guest needs {quantity.from_bytes(LEAST_BYTES)} of memory to get more while it runs": guest < LEAST_BYTES,
        f"memory.guest must be a multiple of {quantity.from_bytes(BLOCK_BYTES)}": guest % BLOCK_BYTES != 0,
        f"maxGuest must be a multiple of {quantity.from_bytes(BLOCK_BYTES)}": most % BLOCK_BYTES != 0,
        "memory.guest is above maxGuest": guest > most,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
