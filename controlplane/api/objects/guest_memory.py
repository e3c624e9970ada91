# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's memory at its start, and the most that it can get while it runs, in bytes. Pure.

As upstream, a guest can get memory while it runs if it has at least 1 GiB, in blocks of 2 MiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects import quantity
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.api.objects.vmi.status import MemoryStatus

BLOCK_BYTES = 2 << 20
"""The unit in which a guest gets and returns memory: a huge page."""
LEAST_BYTES = 1 << 30
"""A smaller guest gets no memory while it runs: its kernel needs bookkeeping for the maximum."""


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """The declared memory of a guest, in bytes."""

    guest: int
    """At its start; 0 when none is declared."""
    most: int
    """The most that it can have while it runs; 0 when it cannot get more."""

    @property
    def room(self) -> int:
        """How much the guest can get beyond its initial memory."""
        return max(0, self.most - self.guest)


def amount_in_bytes(amount: object) -> int:
    """Parse an amount; 0 when it is absent or invalid. Validation reports an invalid one."""
    try:
        return quantity.to_bytes(amount) if isinstance(amount, str | int | float) else 0
    except ValueError:
        return 0


def guest_bytes(domain: DomainSpec) -> int:
    """Return the declared memory: memory.guest, else the request, else the limit, else 0."""
    resources = domain.resources
    amounts = (
        domain.memory.guest if domain.memory else None,
        resources.requests.get("memory"),
        resources.limits.get("memory"),
    )
    return next((quantity.to_bytes(amount) for amount in amounts if amount is not None), 0)


def most_bytes(domain: DomainSpec) -> int:
    """Return the most memory that the guest can have while it runs; 0 when it cannot get more."""
    most = domain.memory.max_guest if domain.memory else None
    return 0 if most is None else quantity.to_bytes(most)


def guest_memory(domain: DomainSpec) -> GuestMemory:
    """Return the declared memory of a guest."""
    return GuestMemory(guest_bytes(domain), most_bytes(domain))


def spare_bytes(domain: DomainSpec, status: MemoryStatus | None) -> int:
    """Return how much memory the guest can still get beyond its largest amount so far. status: of its memory."""
    amounts = () if status is None else (status.guest_at_boot, status.guest_requested, status.guest_current)
    largest = max(guest_bytes(domain), *map(amount_in_bytes, amounts), 0)
    return max(0, most_bytes(domain) - largest)


def refuse_room(guest: int, most: int) -> str:
    """Return why a guest with this much memory cannot grow to `most` while it runs; "" when it can."""
    reasons = {
        f"a guest needs {quantity.from_bytes(LEAST_BYTES)} of memory to get more while it runs": guest < LEAST_BYTES,
        f"memory.guest must be a multiple of {quantity.from_bytes(BLOCK_BYTES)}": guest % BLOCK_BYTES != 0,
        f"maxGuest must be a multiple of {quantity.from_bytes(BLOCK_BYTES)}": most % BLOCK_BYTES != 0,
        "memory.guest is above maxGuest": guest > most,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")
