# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that upstream changes while a machine runs, and how. Data, by path below spec.template.spec.

BUILT lists the ways that this version implements (live_change); every other change needs a restart (restart_required).
Each row names the fields that its way needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class How(Enum):
    """What makes a change take effect."""

    PLUG_CPUS = auto()
    """Sockets are added by a migration to a larger Pod; they are never removed."""
    PLUG_MEMORY = auto()
    """Memory grows, or shrinks down to its size at boot, by a migration to a Pod of that size."""
    NEXT_MIGRATION = auto()
    """The change is written into the VMI and takes effect with its next Pod."""
    PLUG_DISKS = auto()
    """Hotpluggable volumes and CD-ROM media are attached and detached, through a second Pod."""
    MIGRATE_VOLUMES = auto()
    """Claims are replaced by others and their contents are copied, if updateVolumesStrategy requests it."""
    PLUG_INTERFACES = auto()
    """Interfaces are plugged and unplugged, and links set up and down; by a migration if the Pod needs another
    network.
    """
    NOTHING = auto()
    """The VMI has the value already."""


@dataclass(frozen=True, slots=True)
class Live:
    how: How
    needs: tuple[str, ...] = ()
    """Fields that configure it, with [] for the entries of a list."""
    needs_of_vm: tuple[str, ...] = ()
    """The same, in the VM's own spec."""


BUILT = frozenset({How.PLUG_CPUS, How.PLUG_MEMORY, How.NEXT_MIGRATION})

LIVE: dict[str, tuple[Live, ...]] = {
    "domain.cpu.sockets": (Live(How.PLUG_CPUS),),
    "domain.memory.guest": (Live(How.PLUG_MEMORY, needs=("domain.memory.maxGuest",)),),
    "domain.firmware.uuid": (Live(How.NOTHING),),
    "nodeSelector": (Live(How.NEXT_MIGRATION),),
    "affinity": (Live(How.NEXT_MIGRATION),),
    "tolerations": (Live(How.NEXT_MIGRATION),),
    "domain.devices.disks": (Live(How.PLUG_DISKS),),
    "volumes": (
        Live(
            How.PLUG_DISKS,
            needs=("volumes[].persistentVolumeClaim.hotpluggable", "volumes[].dataVolume.hotpluggable"),
        ),
        Live(How.MIGRATE_VOLUMES, needs_of_vm=("updateVolumesStrategy",)),
    ),
    "networks": (Live(How.PLUG_INTERFACES, needs=("networks[].multus",)),),
    "domain.devices.interfaces": (
        Live(
            How.PLUG_INTERFACES,
            needs=(
                "domain.devices.interfaces[].bridge",
                "domain.devices.interfaces[].sriov",
                "domain.devices.interfaces[].state",
            ),
        ),
    ),
}
