# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lengths of serial numbers of disks, which depend on the bus.

QEMU does not start with a longer one on scsi, and usb, which is scsi inside. On virtio and sata it cuts them, and the
guest finds no /dev/disk/by-id of the declared name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.paths import list_at
from controlplane.api.admission.problem import Problem, below
from controlplane.api.objects.vmi.devices import DEFAULT_BUS, Disk

MOST_ON_SCSI = 36
"""A UUID fits."""
SHOWN = {"virtio": 20, "sata": 20}
"""Characters that a guest sees, by bus."""


def check_serial(disk: Disk, path: str) -> Iterator[Problem]:
    """Refuse a serial number with which QEMU does not start."""
    if disk.bus not in SHOWN and len(disk.serial) > MOST_ON_SCSI:
        text = f"has {len(disk.serial)} characters, at most {MOST_ON_SCSI} are possible on bus {disk.bus}; shorten it"
        yield Problem(below(path, "serial"), text)


def warn_of_serials(machine: Any, path: str) -> Iterator[str]:
    """Yield a warning for each serial number that the guest sees cut. machine: spec of an instance, not validated."""
    for index, disk in enumerate(list_at(machine, "domain", "devices", "disks")):
        serial = disk.get("serial") if isinstance(disk, dict) else None
        bus = _bus(disk) if isinstance(serial, str) else ""
        if bus in SHOWN and isinstance(serial, str) and len(serial) > SHOWN[bus]:
            where = f"{path}.domain.devices.disks[{index}].serial"
            yield (
                f"{where}: a guest sees only the first {SHOWN[bus]} of its {len(serial)} characters on bus {bus}; "
                f"shorten it, or use bus scsi, with at most {MOST_ON_SCSI}"
            )


def _bus(disk: dict[str, Any]) -> str:
    targets = (disk.get(kind) for kind in ("cdrom", "disk"))
    named = (target.get("bus") for target in targets if isinstance(target, dict))
    return next((bus for bus in named if isinstance(bus, str) and bus), DEFAULT_BUS)
