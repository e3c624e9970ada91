# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lists of machines are joined by a key of their items, and which fields exclude one another. Pure.

The CRDs call these lists atomic, as upstream's do, so the server helps with neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Path = tuple[str, ...]
ITEM = "[]"
"""The step from a list to one of its items."""

POOLED: Path = ("spec", "virtualMachineTemplate")
"""Where a pool has what a VirtualMachine is."""
_MACHINES: tuple[Path, ...] = (("spec", "template", "spec"), ("spec",), (*POOLED, "spec", "template", "spec"))
"""Where the spec of an instance is: in what has a template, in the instance itself, and in a pool."""
KEYS: dict[Path, Path] = {
    **{(*vm, "spec", "dataVolumeTemplates"): ("metadata", "name") for vm in ((), POOLED)},
    **{
        (*machine, one): ("name",)
        for machine in _MACHINES
        for one in ("volumes", "networks", "resourceClaims", "utilityVolumes")
    },
    **{
        (*machine, "domain", "devices", one): ("name",)
        for machine in _MACHINES
        for one in ("disks", "interfaces", "filesystems", "gpus", "hostDevices", "inputs")
    },
}  # fmt: skip
"""Where the lists are, and where the key is in an item. A list that is not here is a whole (tolerations, timers...)."""

_CLOUD_INIT = (
    frozenset({"userData", "userDataBase64", "secretRef"}),
    frozenset({"networkData", "networkDataBase64", "networkDataSecretRef"}),
)
STRATEGIES = frozenset({"opportunistic", "proactive", "unmanaged"})
"""Of a pool, to scale in and to change its machines."""
_PROBE = (frozenset({"exec", "guestAgentPing", "httpGet", "tcpSocket"}),)
_RIVALS: dict[Path, tuple[frozenset[str], ...]] = {
    ("disks", ITEM): (frozenset({"disk", "lun", "cdrom", "floppy"}),),
    ("interfaces", ITEM): (
        frozenset(
            {"bridge", "masquerade", "sriov", "slirp", "macvtap", "passt", "passtBinding", "binding"}
        ),
    ),
    ("devices", "watchdog"): (frozenset({"i6300esb", "diag288"}),),
    ("dataVolumeTemplates", ITEM, "spec"): (frozenset({"pvc", "storage"}), frozenset({"source", "sourceRef"})),
    ("cloudInitNoCloud",): _CLOUD_INIT,
    ("cloudInitConfigDrive",): _CLOUD_INIT,
    ("spec", "scaleInStrategy"): (STRATEGIES,),
    ("spec", "updateStrategy"): (STRATEGIES,),
    ("firmware", "bootloader"): (frozenset({"bios", "efi"}),),
    ("domain", "clock"): (frozenset({"utc", "timezone"}),),
    ("livenessProbe",): _PROBE,
    ("readinessProbe",): _PROBE,
}  # fmt: skip
"""Fields of which one excludes the others, by the end of the path of what they are in."""
_KINDS: tuple[Path, ...] = (("volumes", ITEM), ("networks", ITEM), ("utilityVolumes", ITEM), (ITEM, "spec", "source"))
"""Where every field but the name is a kind of source, and there is one."""


def key_of(path: Path, item: Any) -> str | None:
    """Return the key of an item of the list at `path`, None if it has none."""
    for step in KEYS[path]:
        item = item.get(step) if isinstance(item, dict) else None
    return item if isinstance(item, str) and item else None


def excluded(path: Path, given: Iterable[str], there: Iterable[str]) -> set[str]:
    """Return what of the fields that are there has to go because of those that are given, in the object at `path`."""
    new, old = set(given), set(there)
    found: set[str] = set()
    if _ends(path, _KINDS) and new - {"name"}:
        found |= old - new - {"name"}
    for size in (1, 2, 3):
        for group in _RIVALS.get(path[-size:], ()) if len(path) >= size else ():
            if new & group:
                found |= (old & group) - new
    return found


def _ends(path: Path, ends: Iterable[Path]) -> bool:
    return any(path[-len(end) :] == end for end in ends)
