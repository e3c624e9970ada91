# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What upstream changes of a machine while it runs, and how: data, by path below spec.template.spec.

BUILT says which ways there are (live_change); every other change asks for a restart (restart_required). Each row names
the fields that its way needs, which are to be built with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class How(Enum):
    """What makes a change take effect."""

    PLUG_CPUS = auto()
    """Sockets are added, by a migration to a Pod with as many more; never taken away."""
    PLUG_MEMORY = auto()
    """The guest's memory grows or shrinks down to what it booted with, by a migration to a Pod with as much."""
    NEXT_MIGRATION = auto()
    """Written into the instance; the next Pod heeds it."""
    PLUG_DISKS = auto()
    """Hotpluggable volumes come and go with their disks, and media of CD-ROMs are exchanged, through a Pod beside."""
    MIGRATE_VOLUMES = auto()
    """Claims are replaced by others to which their contents are copied, where the machine asks for that."""
    PLUG_INTERFACES = auto()
    """Interfaces come and go, and links go up and down; with a migration where the Pod has to have another network."""
    NOTHING = auto()
    """It says what the instance has already."""


@dataclass(frozen=True, slots=True)
class Live:
    how: How
    needs: tuple[str, ...] = ()
    """Fields that say how far it goes, or where; with [] for the entries of a list."""
    needs_of_vm: tuple[str, ...] = ()
    """As needs, of the VM's own spec."""


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
