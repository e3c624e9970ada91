# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about devices that are neither disks nor interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.objects.vmi.devices import DeviceSpec


def check_devices(devices: DeviceSpec, path: str) -> Iterator[Problem]:
    """Check that there is at most one panic device of each model, as libvirt requires."""
    models: set[str] = set()
    for index, device in enumerate(devices.panic_devices):
        if device.built_model in models:
            text = f"{excerpt(device.built_model)} is the model of another one already; remove it, or set another model"
            yield Problem(below(below(below(path, "panicDevices"), index), "model"), text, "FieldValueDuplicate")
        models.add(device.built_model)
