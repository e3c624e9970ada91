# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move a guest from one libvirtd to another: libvirt's client-managed migration, with this process connected to both.

The guest stays paused at the target (docs/adr/0016). The source's domain stays defined, shut off with reason migrated,
as the record of the migration. The call lasts as long as the migration. `Domain.abort_job` ends it early; so does
cutting a connection, after which a source without its client aborts libvirt's job by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import libvirt

from controlplane.domain.observed import LIMIT_BYTES
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError, InvalidDomain

MOST_SECONDS = 7 * 86400.0
"""Deadline of a migration. Callers end it much earlier."""
_IDENTITY = re.compile(r' pod="([^"<>&]{1,64})" epoch="([0-9]{1,9})" ', re.ASCII)
MIB = 1 << 20
MOST_BANDWIDTH = (2**63 - 1) // MIB
"""MiB in a second: what libvirt and QEMU can count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a guest is migrated."""

    pod_uid: str
    """UID of the target's launcher Pod, for the metadata of the target's domain."""
    epoch: int
    memory_socket: str
    """Path in both launchers: the source's QEMU connects there, the target's listens."""
    disks_socket: str
    """The same, for disks."""
    disks: Collection[str] = ()
    """Devices whose contents are copied, e.g. vda."""
    bytes_per_second: int = 0
    """0: no limit."""
    auto_converge: bool = False
    is_still: bool = False
    """libvirt pauses the guest before it sends any memory, instead of after most of it."""


async def migrate(guest: Domain, target: Connection, options: Options) -> Domain:
    """Migrate a guest; return it at the target, paused. HypervisorError: it may not be there.

    The caller must check that the source's QEMU has ended: libvirt does not report a failure of that.
    """
    text = await guest.described(_bounded, migratable=True)
    with_identity = replace_identity(text, options.pod_uid, options.epoch)
    parameters: dict[str, object] = {
        libvirt.VIR_MIGRATE_PARAM_URI: f"unix://{options.memory_socket}",
        libvirt.VIR_MIGRATE_PARAM_DEST_XML: with_identity,
        libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: with_identity,
    }
    flags = libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_PAUSED
    # Under emulation (TCG), QEMU can crash while it sends memory that its guest writes.
    if not options.is_still:
        flags |= libvirt.VIR_MIGRATE_LIVE
    if options.disks:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
        parameters[libvirt.VIR_MIGRATE_PARAM_DISKS_URI] = f"unix://{options.disks_socket}"
        parameters[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = sorted(options.disks)
    if options.auto_converge:
        flags |= libvirt.VIR_MIGRATE_AUTO_CONVERGE
    if options.bytes_per_second:
        parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = min(max(1, options.bytes_per_second // MIB), MOST_BANDWIDTH)
    return await target.receive(guest, parameters, flags, deadline_seconds=MOST_SECONDS)


def replace_identity(text: str, pod_uid: str, epoch: int) -> str:
    """Set the Pod and the epoch in the metadata of a domain's XML. InvalidDomain: the domain is not ours."""
    changed, count = _IDENTITY.subn(f' pod="{pod_uid}" epoch="{epoch}" ', text)
    if count != 1:
        raise InvalidDomain("the domain's metadata does not name its Pod exactly once")
    return changed


def _bounded(text: str) -> str:
    if len(text) > LIMIT_BYTES:
        raise HypervisorError(f"the domain's XML has {len(text)} characters, at most {LIMIT_BYTES} are sent")
    return text
