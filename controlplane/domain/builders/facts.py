# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a domain depends on besides the VMI: the node, the Pod, this launch. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.api.launch_plan import LauncherReport


class NotBuildableError(ValueError):
    """The VMI declares a domain that cannot be made. Admission refuses such VMIs, but it can be bypassed.

    field: path in the VMI, e.g. spec.domain.devices.disks[0].
    """

    def __init__(self, field_path: str, message: str) -> None:
        super().__init__(f"{field_path}: {message}")
        self.field = field_path


@dataclass(frozen=True, slots=True)
class Link:
    """The Pod's end of one interface of the guest."""

    mac: str
    """The guest's address: the launch plan's."""
    tap: str
    mtu: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the builders need to know."""

    pod_uid: str
    epoch: int
    """Number of this launch of the VMI."""
    is_kvm: bool
    """False: QEMU emulates the processor (TCG)."""
    report: LauncherReport = field(default_factory=LauncherReport)
    """The launcher's report about its disks."""
    links: Mapping[str, Link] = field(default_factory=dict)
    """By interface name."""
    default_machine: str = "q35"
    tb_cache_mib: int = 128
    """Limit of QEMU's translated code under emulation (QEMU's default is 1 GiB); part of the memory request."""
