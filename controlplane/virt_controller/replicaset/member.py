# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI as a replica set reads it."""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import RUNNING, is_final
from controlplane.api.objects.vmi.status import has_entered
from controlplane.virt_controller.members.member import Fingerprint, MemberView, identity


class Member(MemberView, frozen=True, kw_only=True):
    """A VMI that belongs to a set, or may be adopted by one."""

    @property
    def is_final(self) -> bool:
        return is_final(self.status.phase)

    @property
    def has_run(self) -> bool:
        """Whether the guest has ever run."""
        return has_entered(RUNNING, self.status.phase, self.status.phase_transition_timestamps)

    @property
    def is_failed_start(self) -> bool:
        """Whether the VMI ended before it ran, without being deleted."""
        return self.is_final and not self.has_run and not self.is_deleting

    @property
    def is_losing_its_pod(self) -> bool:
        """Whether the launcher Pod is being deleted, e.g. by a drain: the VMI will end, so it is replaced at once."""
        ready = conditions.find(self.status.conditions, condition_types.READY)
        return ready is not None and (ready.status, ready.reason) == ("False", condition_types.POD_TERMINATING)

    @property
    def is_spent(self) -> bool:
        """Whether it is to be replaced."""
        return self.is_final or self.is_losing_its_pod


UNCONTROLLED = "uncontrolled"
"""Index of VMIs without a controller, by namespace."""
_decoder = msgspec.json.Decoder(Member)


def read_member(raw: bytes) -> Member:
    """Decode a VMI. Raises msgspec.DecodeError."""
    return _decoder.decode(raw)


def fingerprint(member: Member) -> Fingerprint:
    """Return the fields that a set's decisions depend on. Other changes of a VMI enqueue no set."""
    return *identity(member), member.is_final, member.is_ready, member.is_losing_its_pod, member.is_deleting
