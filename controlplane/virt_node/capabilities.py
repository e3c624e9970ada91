# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's QEMU capability cache of this node. A container of the launcher's image creates it
(virt_launcher/capabilities.py).

The files are in a directory of virt-node's own Pod, so virt-node trusts them. It never reads them from a launcher's
directory. There is one set for launchers with /dev/kvm and one for launchers without: libvirt discards a cache that
does not match its devices.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from controlplane.domain.layout import HOST_CPU
from controlplane.links.node.messages import HostCpu

log = logging.getLogger(__name__)

WITH_KVM, WITHOUT_KVM = "kvm", "emulation"
_LIMIT_BYTES = 4 << 20
_HOST_CPU = msgspec.json.Decoder(HostCpu)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Files of libvirt's capability cache by name, for launchers with and without KVM."""

    with_kvm: Mapping[str, bytes] = field(default_factory=dict)
    without_kvm: Mapping[str, bytes] = field(default_factory=dict)

    def files(self, *, with_kvm: bool) -> Mapping[str, bytes]:
        return self.with_kvm if with_kvm else self.without_kvm


def read_capabilities(directory: Path) -> Capabilities:
    """Read both sets. Without them a start is half a second slower."""
    capabilities = Capabilities(_read(directory / WITH_KVM), _read(directory / WITHOUT_KVM))
    log.info(
        "capability caches",
        extra={"with_kvm": len(capabilities.with_kvm), "without_kvm": len(capabilities.without_kvm)},
    )
    return capabilities


def read_host_cpu(directory: Path, *, with_kvm: bool) -> HostCpu | None:
    """Read the node's CPU as guests with KVM see it, or the CPUs that are emulated; None if that is unknown."""
    path = directory / (WITH_KVM if with_kvm else WITHOUT_KVM) / HOST_CPU
    try:
        return None if path.stat().st_size > _LIMIT_BYTES else _HOST_CPU.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("cannot read the description of the CPU", extra={"path": str(path), "error": str(error)})
        return None


def _read(directory: Path) -> dict[str, bytes]:
    try:
        files = sorted(directory.glob("*.xml"))
        return {path.name: path.read_bytes() for path in files if path.stat().st_size <= _LIMIT_BYTES}
    except OSError as error:
        log.warning("cannot read a capability cache", extra={"directory": str(directory), "error": str(error)})
        return {}
