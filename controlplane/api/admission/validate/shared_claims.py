# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warnings about claims that all instances of a template share. Not an error: some storage allows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.paths import list_at
from controlplane.api.admission.problem import below, excerpt

_WRITTEN = (
    "all replicas are to write to it, which only one instance at a time may do; "
    "use a containerDisk or an emptyDisk, or one replica, or a shareable disk if its file system is made for it"
)
_READ = "instances on other nodes stay Pending unless the claim is ReadOnlyMany or ReadWriteMany"


def warn_of_shared_claims(machine: Any, path: str) -> Iterator[str]:
    """Yield a warning for each claim in a template for several instances. machine: its spec, not validated."""
    shareable = _shareable(machine)
    for index, volume in enumerate(list_at(machine, "volumes")):
        if not isinstance(volume, dict):
            continue
        here = below(below(path, "volumes"), index)
        claim, filled = volume.get("persistentVolumeClaim"), volume.get("dataVolume")
        if isinstance(claim, dict):
            why = _READ if claim.get("readOnly") is True or volume.get("name") in shareable else _WRITTEN
            yield f"{below(here, 'persistentVolumeClaim')}: claim {excerpt(claim.get('claimName'))}: {why}"
        elif isinstance(filled, dict):
            why = _READ if volume.get("name") in shareable else _WRITTEN
            yield f"{below(here, 'dataVolume')}: claim {excerpt(filled.get('name'))}: {why}"


def _shareable(machine: Any) -> list[Any]:
    """Return the names of the shareable disks."""
    disks = list_at(machine, "domain", "devices", "disks")
    return [disk.get("name") for disk in disks if isinstance(disk, dict) and disk.get("shareable") is True]
