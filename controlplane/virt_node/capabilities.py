# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container of the launcher's image found out about QEMU on this node (virt_launcher/capabilities.py).

It lies in a directory of our own Pod, so it is trusted; a launcher's own directory never is a source. There is one
set of files for launchers with /dev/kvm and one for those without: libvirt throws away what does not fit its devices.
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
    """Files of libvirt's capability cache, by name, for either kind of launcher."""

    with_kvm: Mapping[str, bytes] = field(default_factory=dict)
    without_kvm: Mapping[str, bytes] = field(default_factory=dict)

    def files(self, *, with_kvm: bool) -> Mapping[str, bytes]:
        return self.with_kvm if with_kvm else self.without_kvm


def read_capabilities(directory: Path) -> Capabilities:
    """Read both sets; what is missing only makes starts half a second slower."""
    found = Capabilities(_read(directory / WITH_KVM), _read(directory / WITHOUT_KVM))
    log.info("capability caches", extra={"with_kvm": len(found.with_kvm), "without_kvm": len(found.without_kvm)})
    return found


def read_host_cpu(directory: Path) -> HostCpu | None:
    """Read what the node's processor is for guests that use it; None where nobody found out."""
    one = directory / WITH_KVM / HOST_CPU
    try:
        return None if one.stat().st_size > _LIMIT_BYTES else _HOST_CPU.decode(one.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("cannot read what the processor is", extra={"path": str(one), "error": str(error)})
        return None


def _read(directory: Path) -> dict[str, bytes]:
    try:
        files = sorted(directory.glob("*.xml"))
        return {one.name: one.read_bytes() for one in files if one.stat().st_size <= _LIMIT_BYTES}
    except OSError as error:
        log.warning("cannot read a capability cache", extra={"directory": str(directory), "error": str(error)})
        return {}
