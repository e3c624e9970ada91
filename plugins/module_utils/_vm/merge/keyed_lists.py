# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists whose items are matched by a key, and fields that exclude one another. Pure.

The CRDs declare these lists atomic, as KubeVirt's do, so the API server does neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..field_path import Path
from ..kinds import POOL_TEMPLATE

ITEM = "[]"
"""The step from a list to one of its items."""

_MACHINES: tuple[Path, ...] = (("spec", "template", "spec"), ("spec",), (*POOL_TEMPLATE, "spec", "template", "spec"))
"""Paths of the spec of an instance: in a kind with a template, in the instance itself, in a pool."""
KEYS: dict[Path, Path] = {
    **{(*vm, "spec", "dataVolumeTemplates"): ("metadata", "name") for vm in ((), POOL_TEMPLATE)},
    **{
        (*machine, name): ("name",)
        for machine in _MACHINES
        for name in ("volumes", "networks", "resourceClaims", "utilityVolumes")
    },
    **{
        (*machine, "domain", "devices", name): ("name",)
        for machine in _MACHINES
        for name in ("disks", "interfaces", "filesystems", "gpus", "hostDevices", "inputs")
    },
}  # fmt: skip
"""Path of a list to the path of the key in its items. Any other list is atomic (tolerations, timers...)."""

_CLOUD_INIT = (
    frozenset({"userData", "userDataBase64", "secretRef"}),
    frozenset({"networkData", "networkDataBase64", "networkDataSecretRef"}),
)
STRATEGIES = frozenset({"opportunistic", "proactive", "unmanaged"})
"""Strategies of a pool: how it scales in, and how it updates its machines."""
_PROBE = (frozenset({"exec", "guestAgentPing", "httpGet", "tcpSocket"}),)
_EXCLUSIVE: dict[Path, tuple[frozenset[str], ...]] = {
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
"""Groups of fields that exclude one another, by the end of the object's path."""
_SINGLE_SOURCE: tuple[Path, ...] = (
    ("volumes", ITEM),
    ("networks", ITEM),
    ("utilityVolumes", ITEM),
    (ITEM, "spec", "source"),
)
"""Objects whose fields, except name, are kinds of source, which exclude one another."""


def key_of(path: Path, item: Any) -> str | None:
    """Return the key of an item of the list at `path`, None if it has none."""
    for step in KEYS[path]:
        item = item.get(step) if isinstance(item, dict) else None
    return item if isinstance(item, str) and item else None


def excluded(path: Path, declared: Iterable[str], live: Iterable[str]) -> set[str]:
    """Return the live fields of the object at `path` that the declared fields exclude."""
    new, old = set(declared), set(live)
    fields: set[str] = set()
    if _ends(path, _SINGLE_SOURCE) and new - {"name"}:
        fields |= old - new - {"name"}
    for size in (1, 2, 3):
        for group in _EXCLUSIVE.get(path[-size:], ()):
            if new & group:
                fields |= (old & group) - new
    return fields


def _ends(path: Path, ends: Iterable[Path]) -> bool:
    return any(path[-len(end) :] == end for end in ends)
