# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vm-full.yaml has every field of a VirtualMachine, so that tests which change its fields miss none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.api.objects.vm import VirtualMachineSpec
from controlplane.api.schema.bounds import Bounds
from controlplane.api.schema.shape import Shape, shapes
from tests.controlplane.api import golden

EXCLUDED = {
    "VirtualMachineSpec.running": "excluded by runStrategy",
    "VirtualMachineSpec.dataVolumeTemplates": "refused in a cluster without CDI",
    "VirtualMachineInstanceSpec.startStrategy": "excluded by livenessProbe",
    "Volume.dataVolume": "refused in a cluster without CDI",
    "CloudInitNoCloud.userDataBase64": "excluded by userData",
    "CloudInitNoCloud.secretRef": "excluded by userData",
    "CloudInitNoCloud.networkDataBase64": "excluded by networkData",
    "CloudInitNoCloud.networkDataSecretRef": "excluded by networkData",
    "Bootloader.efi": "excluded by bios",
    "Clock.timezone": "excluded by utc",
    "Probe.guestAgentPing": "excluded by exec and httpGet",
    "Probe.tcpSocket": "excluded by exec and httpGet",
}
"""Fields that vm-full.yaml cannot have, and why. Nor has it what is only below them."""
ALL_OF_KUBERNETES = ("ObjectMeta",)
"""Types of which a VirtualMachine's author sets only a few fields."""


def built(shape: Shape | None) -> Iterator[str]:
    """Yield the fields of the structs in a value, but not those that are excluded."""
    while shape is not None:
        if shape.struct is not None and shape.struct.__name__ not in ALL_OF_KUBERNETES:
            for name, (inner, _is_required) in shapes(shape.struct).items():
                field = f"{shape.struct.__name__}.{name}"
                yield field
                yield from () if field in EXCLUDED else built(inner)
        shape = shape.item


def written(shape: Shape | None, value: Any) -> Iterator[str]:
    """Yield the fields that a value of a manifest has."""
    if shape is None:
        return
    if shape.struct is not None:
        for name, (inner, _is_required) in shapes(shape.struct).items():
            if name in value:
                yield f"{shape.struct.__name__}.{name}"
                yield from written(inner, value[name])
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from written(shape.item, item)


def test_every_field_is_in_the_full_machine_or_excluded() -> None:
    spec = Shape(dict, Bounds(), struct=VirtualMachineSpec)
    assert set(built(spec)) - set(written(spec, golden.load("vm-full")["spec"])) == set(EXCLUDED)
