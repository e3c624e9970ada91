# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host name and the UUID of a guest, derived alike wherever the guest gets them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from controlplane.api.objects.vmi.instance import VirtualMachineInstance


@dataclass(frozen=True, slots=True)
class GuestIdentity:
    """A guest's host name and UUID."""

    hostname: str
    """One label of at most 63 characters."""
    uuid: str
    """Of its firmware; also cloud-init's instance id."""


def guest_identity(vmi: VirtualMachineInstance) -> GuestIdentity:
    """Derive the identity of a VMI's guest."""
    return GuestIdentity(_hostname(vmi), firmware_uuid(vmi))


def firmware_uuid(vmi: VirtualMachineInstance) -> str:
    """Return the system UUID that the guest sees: the spec's, or else the VMI's UID."""
    firmware = vmi.spec.domain.firmware
    return (firmware.uuid if firmware else "") or vmi.metadata.uid


def _hostname(vmi: VirtualMachineInstance) -> str:
    first = (vmi.spec.hostname or vmi.metadata.name).split(".")[0].lower()
    return re.sub(r"[^a-z0-9-]", "-", first)[:63].strip("-") or "vm"
