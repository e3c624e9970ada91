# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest from one libvirtd to another: libvirt's client-managed migration, in which this process speaks to both.

The guest stays paused at the target (docs/adr/0016), and the source's domain stays defined, shut off and migrated, as
the record of it. The call lasts as long as the migration: whoever ends it early says so by `Guest.abort_job`, or cuts a
connection. libvirt's own job stays as it is then: a source whose client is gone gives it up by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import libvirt

from controlplane.domain.observed import LIMIT_BYTES
from controlplane.hypervisor.connection import Connection
from controlplane.hypervisor.errors import HypervisorError, InvalidDomain
from controlplane.hypervisor.guest import Guest

MOST_SECONDS = 7 * 86400.0
"""Of a migration. Whoever has one sees to its end much earlier."""
_IDENTITY = re.compile(r' pod="([^"<>&]{1,64})" epoch="([0-9]{1,9})" ', re.ASCII)
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a guest is sent."""

    pod_uid: str
    """Of the launcher that it goes to: what its domain says of itself there."""
    epoch: int
    memory_socket: str
    """Where QEMU dials at the source and listens at the target, in either launcher; so with disks."""
    disks_socket: str
    disks: Collection[str] = ()
    """Devices whose contents are sent, e.g. vda."""
    bytes_per_second: int = 0
    """0: as fast as it goes."""
    auto_converge: bool = False
    is_still: bool = False
    """Its processors are stopped by libvirt before any of its memory is sent, and not when most of it has been."""


async def migrate(guest: Guest, target: Connection, options: Options) -> Guest:
    """Send a guest, and return it as it is at the target: paused. HypervisorError: it is not known to be there.

    Whether the source's QEMU is gone then is asked of the source: libvirt does not tell when that went wrong.
    """
    text = await guest.described(_bounded, migratable=True)
    with_identity = exchange_identity(text, options.pod_uid, options.epoch)
    parameters: dict[str, object] = {
        libvirt.VIR_MIGRATE_PARAM_URI: f"unix://{options.memory_socket}",
        libvirt.VIR_MIGRATE_PARAM_DEST_XML: with_identity,
        libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: with_identity,
    }
    flags = libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_PAUSED
    if not options.is_still:
        flags |= libvirt.VIR_MIGRATE_LIVE
    if options.disks:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
        parameters[libvirt.VIR_MIGRATE_PARAM_DISKS_URI] = f"unix://{options.disks_socket}"
        parameters[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = sorted(options.disks)
    if options.auto_converge:
        flags |= libvirt.VIR_MIGRATE_AUTO_CONVERGE
    if options.bytes_per_second:
        parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = max(1, options.bytes_per_second // MIB)
    return await target.receive(guest, parameters, flags, deadline_seconds=MOST_SECONDS)


def exchange_identity(text: str, pod_uid: str, epoch: int) -> str:
    """Let a domain's description say that it is in another Pod, and of which epoch. InvalidDomain: it is not ours."""
    changed, count = _IDENTITY.subn(f' pod="{pod_uid}" epoch="{epoch}" ', text)
    if count != 1:
        raise InvalidDomain("the domain does not say once of itself in which Pod it is")
    return changed


def _bounded(text: str) -> str:
    if len(text) > LIMIT_BYTES:
        raise HypervisorError(f"the domain's description has {len(text)} characters, at most {LIMIT_BYTES} are sent")
    return text
